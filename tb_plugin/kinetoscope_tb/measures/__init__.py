"""What follows from one trace: pure functions from a `Trace` to arrays or frames, for views, timeline and advice.

time       breakdown of steps, exposed time, idle time, queues, histograms, some steps alone
calls      operators, kernels, launches, graphs, modules; trees of calls; forward and backward
python     Python frames, call paths and call stacks
memory     allocations, and levels of memory
recording  the devices, and which torch wrote the file
"""
