"""What is in an area of the timeline, a range of time on some tracks: its slices by group and as a flame graph."""
