"""Algorithms on arrays that know nothing of traces.

gather           values by row number or name, for a whole column at once; NONE, the row number of no row
intervals        half-open intervals: union, intersection, length
nesting          which range of a thread lies in which
downsample       curves, reduced to what a picture can show (M4)
jit              the one way in which functions are compiled (numba)
private_folders  where compiled code may lie: folders that only this user can write to
"""
