"""What recorded the trace, and what it recorded.

device_properties  the machine's devices      vendor   their vendor's words for their parts
torch_version      that wrote the file        server   the inference server that was recorded
contents           what there is any of: predicates for views
processor_use      how much the process and the machine used the processors
"""
