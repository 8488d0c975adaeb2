"""Files that hold several processes: which events belong to which, and what each is called.

Profilers record one process per file. Whoever wants to see ranks side by side merges their files: SGLang's profile
merger, TraceLens' TraceFuse, `--combine` of torch's profile_analysis, our own `merge`. All of them append the events of
one file to those of the one before, and only some change the numbers by which events are linked.

ownership   the process of each event
identity    the name, the rank and the metadata of each process
split       one recording per process
"""
