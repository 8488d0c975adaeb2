"""Python: names of frames (frames), call paths from the thread down (paths), call stacks of operators (call_stacks)."""
