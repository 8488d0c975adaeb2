"""Views of devices: kernels, copies, graphs, efficiency, idle time."""
