"""torch.profiler: how it is driven, which ranges and events a program adds, and other profilers in the same process."""
