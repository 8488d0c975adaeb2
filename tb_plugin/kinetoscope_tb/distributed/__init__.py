"""Runs of many ranks: a summary of each trace, and what follows from all of them together.

model           the columns of a `Summary`
summary         a trace as a summary; from: activity, process_groups, collectives
validation      whether a summary can be used
run             summaries side by side: `Ranks`; contents: what there is any of
collectives     calls, sizes, matching, waits, traffic
clocks          offsets between the ranks' clocks
imbalance       stragglers, slow links
roles           what each rank does in the job
path            the critical path across ranks
"""
