"""Servers: the iterations of a recording without steps, and their phases.

iterations  when each iteration began and ended, its requests, tokens and device work
steps       iterations as the steps of the recording
inference   the iterations of a recording that doesn't mark them, from its calls and kernels
steadiness  which iterations are warm-up, ramp-up, drain or stragglers, and which are the steady part
attention   FLOPs and bytes of attention, from the lengths of requests
matmuls     FLOPs and bytes of matmuls, with their weights
iteration_labels  what views call the annotations of iterations
limits      the parts of each phase's time, and how near its kernels come to the roof
costs       device time, idle time with its causes, and families of kernels, per iteration
"""
