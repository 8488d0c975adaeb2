"""What had to end before something could begin: the waits of a recording as a graph, its critical path, what-if."""

from .classes import CLASSES, ON_DEVICE, own_classes
from .edges import INFERRED, REASONS
from .graph import Graph
from .names import node_places, with_names
from .path import critical_path
from .what_if import WhatIf

__all__ = [
    "CLASSES",
    "INFERRED",
    "ON_DEVICE",
    "REASONS",
    "Graph",
    "WhatIf",
    "critical_path",
    "node_places",
    "own_classes",
    "with_names",
]
