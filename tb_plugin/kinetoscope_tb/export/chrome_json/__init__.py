"""A timeline as Chrome's JSON, compact and compressed with gzip.

writer     the file: threads, then events in portions
events     slices as text, many at once     arguments  their arguments, named as kineto names them
arrows     links between slices             counters   memory, and the file's own counters
nesting    threads in which no two slices overlap in part
"""
