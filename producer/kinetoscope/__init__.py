"""Records PyTorch profiler traces, one file per rank and window, without hurting the training."""
