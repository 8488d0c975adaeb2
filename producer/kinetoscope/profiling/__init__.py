"""Drives torch.profiler, adds the program's ranges and events, and handles other profilers in the same process."""
