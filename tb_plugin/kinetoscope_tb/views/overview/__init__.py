"""Views that a look at a recording begins with: where the steps' time went, what to do, how it was recorded."""
