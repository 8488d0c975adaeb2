"""What had to end before something could begin: the waits of a recording as a graph, its critical path, what-if.

boundaries    instants at which a thread begins or ends something
nodes, edges  the graph's arrays; streams: rows of streams in order
sync_edges, stream_edges, thread_edges   who waits for whom
graph         all of it              classes   what the time between two nodes went to
path          the critical path      what_if   steps, if some work were faster
segments      the graph, reduced to what happens between collectives
names         names of nodes and segments; python_frames: the Python call around one
explanation   graph, paths and what-if of one recording, made once
"""

from .classes import CLASSES, ON_DEVICE
from .edges import INFERRED, REASONS, Kind
from .explanation import Explanation
from .graph import Graph
from .names import NAMELESS, Names, Places
from .path import critical_path, trace_back
from .python_frames import python_around
from .row_events import path_events
from .segments import SEGMENTS, segments
from .what_if import WhatIf

__all__ = [
    "CLASSES",
    "INFERRED",
    "NAMELESS",
    "ON_DEVICE",
    "REASONS",
    "SEGMENTS",
    "Explanation",
    "Graph",
    "Kind",
    "Names",
    "Places",
    "WhatIf",
    "critical_path",
    "path_events",
    "python_around",
    "segments",
    "trace_back",
]
