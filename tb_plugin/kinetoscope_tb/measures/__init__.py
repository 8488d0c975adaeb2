"""Measures of one trace: pure functions from a `Trace` to arrays or frames, for views, timeline and advice.

time       breakdown of steps, exposed time, idle time, queues, histograms, subsets of steps
calls      operators, kernels, launches, graphs, modules; trees of calls; forward and backward
python     Python frames, call paths and call stacks, and where a thread is at an instant
memory     allocations, and memory levels
recording  the devices, the torch version that wrote the file, and how much the processors were used
"""
