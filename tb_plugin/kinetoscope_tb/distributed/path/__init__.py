"""The critical path across ranks.

sync_points    where a trace's collectives begin and end in its graph
merged_graph   the graphs of all ranks as one
paths          the critical path of each step, and what-if
path_segments  its segments by worker and time
pace_of_others what one rank as fast as the others would save
"""
