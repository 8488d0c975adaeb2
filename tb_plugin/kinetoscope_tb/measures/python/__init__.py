"""Python.

frames       names of frames
paths        call paths from the thread down
call_stacks  call stacks of operators
whereabouts  where in the program a thread is at an instant
"""
