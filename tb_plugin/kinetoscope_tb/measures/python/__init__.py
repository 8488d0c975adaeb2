"""Python: frames of calls (frames), their paths from the thread down (paths), stacks of operators (call_stacks)."""
