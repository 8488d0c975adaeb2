"""Algorithms on arrays, without any knowledge of traces.

gather           values by row number or name, for a whole column at once; NONE, the missing row number
intervals        half-open intervals: union, intersection, length
nesting          which range of a thread is nested in which
downsample       curves with fewer points that look the same (M4)
native           functions of the compiled library
"""
