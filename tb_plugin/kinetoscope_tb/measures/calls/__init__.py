"""Calls and their host and device costs.

op_calls         of operators                     kernel_calls     of kernels
launch_outcomes  of the runtime and the driver    graph_launches   of CUDA and HIP graphs
matrix_calls     of operators with known FLOPs    module_calls     of modules; module_times: their cost
call_tree        calls in calls, merged by path   backward         forward operators of backward ones
memory_calls     of operators whose limit is memory
matrix_work      FLOPs and bytes of an operator's call, from its shapes
memory_work      bytes that memory-bound operators move, from their shapes
"""
