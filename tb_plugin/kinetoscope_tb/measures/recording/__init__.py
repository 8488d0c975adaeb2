"""The machine's devices (device_properties), and the torch version that wrote the file (torch_version)."""
