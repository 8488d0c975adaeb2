"""Whether something became slower, judged by several recordings a side, with a stated rate of false alarms.

numbers      the gated number of a recording
permutation  the exact test
corrections  of many tests: Holm, and Benjamini and Hochberg
power        how many recordings find how large a change
recordings   recordings of both sides, by process
decision     slower, not slower, or cannot tell
explanation  the rows that changed with it
comment      the decision in Markdown
picture      both sides as SVG
"""
