"""What the file says of the machine (device_properties), and which torch wrote it (torch_version)."""
