"""A cycle of a directed graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping


def short_cycle(successors: Mapping[int, Collection[int]]) -> list[int]:
    """The nodes of a cycle, in order, from its smallest one; none if the graph has no cycle.

    Kahn's topological sort takes away what leads to no cycle; then each node has a successor, so a walk comes to a
    cycle. The result is a shortest one through the node that the walk comes to twice (breadth-first search).
    """
    graph = _without_ends(successors)
    if not graph:
        return []
    node, visited_nodes = min(graph), set()
    while node not in visited_nodes:
        visited_nodes.add(node)
        node = min(graph[node])
    cycle = _path_back(graph, node)
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _without_ends(successors: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
    """The graph without nodes from which no cycle is reached."""
    graph = {node: {other for other in others if other in successors} for node, others in successors.items()}
    predecessors: dict[int, list[int]] = {node: [] for node in graph}
    for node, others in graph.items():
        for other in others:
            predecessors[other].append(node)
    ends = [node for node, others in graph.items() if not others]
    while ends:
        end = ends.pop()
        del graph[end]
        for node in predecessors[end]:
            graph[node].discard(end)
            if not graph[node]:
                ends.append(node)
    return graph


def _path_back(graph: Mapping[int, Collection[int]], start: int) -> list[int]:
    """A shortest path from a node of a cycle to itself."""
    before: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in sorted(graph[node]):
            if other == start:
                path = [node]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return path[::-1]
            if other not in before:
                before[other] = node
                queue.append(other)
    return []
