"""Algorithms on arrays, without any knowledge of traces.

gather           values by row number or name, for a whole column at once; NONE, the missing row number
constants        columns with the same value in every row, stored once
intervals        half-open intervals: union, intersection, length
nesting          which range of a thread is nested in which
downsample       curves with fewer points that look the same (M4)
allocator        free memory, given back to the system
native           functions of the compiled library
"""
