"""The timeline: every slice of a trace, ready to be drawn at any zoom.

core      what is drawn: model, tracks, levels of detail
search    slices by text, by values, by rows of views
area      slices in a range of time on some tracks: by group, as a flame graph; statistics of counters there
details   one slice: timing, links, arrows, statistics
counters  counter tracks: memory, utilization, queues, the program's own counters
critical_path  critical paths, of one worker and across ranks

As a file for other viewers: `export/chrome_json`.
"""
