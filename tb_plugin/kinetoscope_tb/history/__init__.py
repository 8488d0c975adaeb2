"""The runs of one job over time: what a step took in each, since when it takes longer, and what of it.

change_points   where the level of a series changed, with a stated rate of false points
recorded_run    one run by its summaries and its run.json
series          the runs that may be compared, and the levels between their changes
shares          the parts of a change, which add up to it
words           changes as sentences
table           a row per run
"""
