"""What had to end before something could begin: the waits of a recording as a graph, its critical path, what-if."""

from .classes import CLASSES, ON_DEVICE
from .edges import INFERRED, REASONS, Kind
from .explanation import Explanation
from .frames import python_around
from .graph import Graph
from .legs import LEGS, legs
from .names import NAMELESS, Names, Places
from .path import critical_path, ways_back
from .what_if import WhatIf

__all__ = [
    "CLASSES",
    "INFERRED",
    "LEGS",
    "NAMELESS",
    "ON_DEVICE",
    "REASONS",
    "Explanation",
    "Graph",
    "Kind",
    "Names",
    "Places",
    "WhatIf",
    "critical_path",
    "legs",
    "python_around",
    "ways_back",
]
