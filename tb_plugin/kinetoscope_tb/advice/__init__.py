"""Advice: what costs time in the steps, the evidence, and what to do about it.

advice      the rules in order, and what is said of their results
facts       what several rules need
savings     what candidates save, by simulation; saving_range: within which bounds; candidates: what they cover
data_loading    waiting for batches
host        synchronizing calls, late launches, small operators, the optimizer, allocation
cpu         without a device: waits of the main thread, contended cores, Python code, dominant operators
operator_pace   without a device: operators slower than any processor, as their threads wait for cores
anomaly     anomaly detection of autograd that was left on
contention  other threads that have Python's lock or the cores while the main thread would run
experts     uneven numbers of tokens per expert
communication   exposed communication: waiting for other ranks, or moving data
device      exposed copies, DataParallel, small kernels, nearly full memory
kernels     attention that isn't fused, operators far below their roof, kernels to fuse, casts and layout changes
repetition  the same gap in every step
warm_up     first steps that take longer
compiled_code   torch.compile that compiles again, or whose code falls apart
precision   matmuls that could use tensor cores
serving     what limits a server's tokens per second
recording   the profiler's own cost, pauses of Python
faults      what isn't said, since the recording contradicts itself or lacks events
"""
