"""One recording from start to end: the loop's steps, the windows, and what supervises them."""
