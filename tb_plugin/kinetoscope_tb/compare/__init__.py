"""Compares a keyed view of two traces row by row: base, new, their difference, and whether it exceeds noise.

Rows are joined on the view's key (in a tree: on the path from its root); rows of only one side are included. If both
traces mark steps, amounts are per step: the sum over the counted steps divided by their number. Counted are the
complete steps, or all if none is complete; everything outside them is left out. Means, extremes, shares and ratios are
those of the counted steps together, undivided. If only one side marks steps, shares and means per call replace amounts;
if neither does, whole traces are compared.

Noise is the variation between the steps of each trace. Another trace of the same code can differ by more: clocks,
other jobs and temperatures change too.

comparison  the joined table
changes     what changed most, of any kind
headline    how the average step changed, in a sentence
shares      what can be compared if only one side marks steps
runs        the view of one run, by rank
sides       the view of one trace's steps, and their spread
step_difference  why a step of one recording takes longer than one of another, in terms that add up
statistics  how much means of few steps differ by chance
tree_paths  rows of a tree by their path
account     what the time of a step consists of
alignment   which device work of one recording is which of another, across different code
gate        several recordings a side: whether something became slower
rules       limits on changes, for continuous integration
table       the schema of a comparison
"""
