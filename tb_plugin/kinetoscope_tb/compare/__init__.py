"""Any keyed view of two traces, row beside row: base, new, their difference, and whether it is more than noise.

Rows are joined on the view's key (in a tree: on the path from its root), and a row of one side only is kept. Where both
recordings mark steps, amounts are told per step: what the counted steps hold, divided by their number. Counted are the
complete steps, or all if none is complete; what lies outside them is left out. Means, extremes, shares and ratios are
those of the counted steps together, undivided. Without marked steps on either side, whole recordings are compared.

Noise is what the steps differ by among themselves, within the two recordings. Another recording of the same code can
differ by more: clocks, neighbours and temperatures change too.

comparison  the joined table
sides       what a view says of the steps of one trace, and how they spread
statistics  how far means of few steps differ by chance
tree_paths  rows of a tree by the way that leads to them
rules       what may not change, for continuous integration
"""

from .comparison import Basis, Comparison, compare
from .rules import Rule, Verdict, compared_column, judge, parse_rule, row_names

__all__ = [
    "Basis",
    "Comparison",
    "Rule",
    "Verdict",
    "compare",
    "compared_column",
    "judge",
    "parse_rule",
    "row_names",
]
