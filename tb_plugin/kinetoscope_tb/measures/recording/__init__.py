"""The recording and its machine.

device_properties  the machine's devices
processor_use      how much the process and the machine used the processors
torch_version      the torch version that wrote the file
"""
