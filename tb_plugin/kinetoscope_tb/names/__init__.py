"""The meaning of names: kernels, calls, collectives, operators and devices. Nothing here reads a trace.

kernels           communication, data loading and steps, by name
device_work       device work in files without categories
kernel_families   attention, matmuls, experts, sampling and other families of a served model's kernels
kernel_labels     readable labels of kernels
iterations        iterations of servers, by their annotations and functions
calls             which runtime and driver calls synchronize, allocate, copy or set up a device
python_frames     which Python frames wait, collect garbage, or belong to a library
compiled_code     what torch.compile writes: compilation, compiled regions and graphs
collectives       kinds of collectives, their message sizes and bus factors
tensor_cores      which kernels use tensor cores, and which operators could
device_peaks      peak FLOPS and memory bandwidth of devices
regex             regular expressions, compiled at their first use
text              numbers in sentences: few digits, with a unit
"""
