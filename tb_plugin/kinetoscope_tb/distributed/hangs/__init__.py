"""Why a job stands still, from the dumps of torch's flight recorder: pure functions of `Dump`.

operations  the entries of a dump → operations, and which of them are open
groups      process groups by name and ranks, and who is a member
job         all ranks of a job side by side, and whether a rank issued an operation
waits       the wait-for graph: who waits for whom, in which operation
cycles      a cycle of a graph
order       who departs from its own earlier order, in a cycle
mismatch    ranks that called another operation, dtype or size in the same collective
slow_work   work for which others wait in healthy jobs too
verdict     one culprit, or why none can be named
titles      operations and ranks as text
sentences   the verdict as one sentence
whereabouts where a rank's own code is
evidence    what it rests on: a row per rank, and sentences
"""
