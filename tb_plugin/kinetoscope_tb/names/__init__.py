"""The meaning of names: kernels, calls, collectives, operators and devices. Nothing here reads a trace.

kernels       communication, data loading and steps, by name
calls         which runtime and driver calls synchronize, allocate or copy
collectives   kinds of collectives, their message sizes and bus factors
tensor_cores  which kernels use tensor cores, and which operators could
matrix_work   FLOPs and bytes of an operator's call, from its shapes
memory_work   bytes that memory-bound operators move, from their shapes
device_peaks  peak FLOPS and memory bandwidth of devices
"""
