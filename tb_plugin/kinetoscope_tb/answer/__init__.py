"""The answer about a recording or a run: what costs most, how sure that is, what can't be said, and the rows behind it.

It is computed once, of views and of the advice behind them. The command line, notebooks, the Python API and the HTTP
API show it and compute nothing of their own, so no two of them disagree.

model       what an answer is
recording   the answer about one recording
run         the answer about a run: first what its ranks say of each other
first_screen   an answer as text and tables
"""
