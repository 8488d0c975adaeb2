"""The waits of a trace as a graph, its critical path, and what-if estimates.

boundaries    instants at which a thread begins or ends something
nodes, edges  the graph's arrays; streams: rows of streams in order
sync_edges, stream_edges, thread_edges, collective_edges   which wait ends when
graph         the whole graph        classes   what the time between two nodes went to
path          the critical path      what_if   step times if some work were faster
segments      the graph, reduced to the segments between collectives
names         names of nodes and path segments
row_events    the events of a row of the views
explanation   graph, paths and what-if of one trace, computed once
"""
