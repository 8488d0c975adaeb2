"""Servers: the iterations of a recording without steps, and their phases.

iterations  when each iteration began and ended, its requests, tokens and device work
steps       iterations as the steps of the recording
inference   the iterations of a recording that doesn't mark them, from its calls and kernels
steadiness  which iterations are warm-up, ramp-up, drain or stragglers, and which are the steady part
costs       device time, idle time with its causes, and families of kernels, per iteration
"""
