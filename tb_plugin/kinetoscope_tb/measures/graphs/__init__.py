"""Kernels that graphs replay, and what launched them.

launch_sequences  launches in order: of a graph's capture, and of eager work      alignment  of two sequences
replays           the device rows of each launch of a graph      join      of replays with launch sequences
replayed_calls    a trace with the calls that its graphs replay  layers    inferred from the order of kernels alone
attribution       how the operator of a kernel is known
replayed_kernels  one row per replayed kernel: operator, module, line, layer, and how each is known
"""
