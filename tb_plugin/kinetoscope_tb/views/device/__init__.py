"""Views of GPUs: kernels, copies, graphs, efficiency, idle time."""
