"""Reads PyTorch profiler traces, analyses them, and serves the answers to TensorBoard and the command line."""
