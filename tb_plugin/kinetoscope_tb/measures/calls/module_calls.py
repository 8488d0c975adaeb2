"""The module that host and device work belongs to, forward and backward.

A module's call is a Python call with a module id, or one of Lightning's `[pl]` annotations. Work belongs to the
innermost module that was open on its thread; backward work belongs to the module of its forward operator
(`measures/calls/backward.py`), wherever it runs. Work outside all modules is in the sums, under NONE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, category_codes, factorize, gather, map_categories
from ...arrays.nesting import nearest
from ...names.regex import regex
from ...trace.model import LIGHTNING, Trace
from ...trace.results import once_per_trace
from ...trace.row_filters import Events, calls_of_event, is_operator_of_all
from .backward import forward_ops
from .call_tree import CallForest, Ints, MergedTree, Rows, merge_calls, path_texts

_MODULE = "nn.Module: "
_LIGHTNING_MODULE = regex(r"\[pl\]\[module\](?P<type>[^:]*): (?P<path>.*)", re.DOTALL)
_LIGHTNING_PREFIX = regex(r"\[pl\](\[profile\]|\[module\])?")
_INSTANCE = regex(r"_\d+$")
_GRADIENTS_OF_GRADIENTS = 3  # maximum order of differentiation


class ModuleName(NamedTuple):
    """A module's name to show, its class (None: a hook), and its path in the model, if known."""

    label: str
    of_class: str | None
    attribute: str | None = None


@dataclass(frozen=True)
class ModuleCalls:
    """The modules as a tree by path, and what belongs to them.

    Attributes:
        tree: One node per path of module calls.
        names: Of each node.
        calls: Of each node.
        forest: All calls of modules and operators.
        node: Of each row of the forest, the module that it belongs to, or NONE.
        is_backward: Of each row, whether it is backward work.
        is_module: Of each row, whether it is a module's own call.
    """

    tree: MergedTree
    names: tuple[ModuleName, ...]
    calls: Ints
    forest: CallForest
    node: Rows
    is_backward: NDArray[np.bool_]
    is_module: NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace) -> ModuleCalls:
        """The modules of a trace: computed at the first call and cached as long as the trace exists."""
        return _module_calls(trace)

    @classmethod
    def _of(cls, trace: Trace) -> ModuleCalls:
        host = trace.all_host_events
        is_op = is_operator_of_all(trace)
        is_hook = map_categories(host["name"], lambda name: name.startswith(LIGHTNING))
        python = np.flatnonzero(trace.all_python_calls["module_id"].to_numpy() >= 0).astype(np.int32)
        forest = CallForest.of(trace, python, np.flatnonzero(is_op | is_hook).astype(np.int32))
        row_names = _RowNames.of(trace, forest, gather(is_hook, forest.host, missing=False))
        tree = merge_calls(forest.parent, row_names.code)
        node, is_backward = _owners(trace, forest, tree, row_names.is_module)
        names = tuple(row_names.names[code] for code in tree.code)
        calls = tree.sums(np.where(row_names.code >= 0, tree.node, NONE).astype(np.int32))
        return cls(tree, names, calls, forest, node, is_backward, row_names.is_module)

    def paths(self) -> list[str]:
        """The path of each node: the names of the modules around it, from the outermost, and its own."""
        return path_texts([name.label for name in self.names], self.tree.parent)

    def of_rows(self, rows: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        """(module, whether it is backward work) of rows of the forest, which may be NONE."""
        return gather(self.node, rows), gather(self.is_backward, rows, missing=False)

    def of_host_rows(self, trace: Trace) -> tuple[Rows, NDArray[np.bool_]]:
        """(module, whether it is backward work) of each host event; annotations have no module."""
        return self.of_rows(self.forest.holding_host_rows(trace.all_host_events.height))

    def node_of(self, trace: Trace, frame: str, row: int) -> int:
        """The node of a module's call, or of the innermost one that a graph replays around a device row; else NONE."""
        forest, python = self.forest, trace.all_python_calls.height
        for of, at in calls_of_event(trace, frame, row):
            number = {"python_calls": at, "host_events": python + at}.get(of, NONE)
            rows = np.flatnonzero(self.is_module & (forest.row == number))
            if rows.size:
                return int(self.tree.node[rows[0]])
        return NONE

    def events_of(self, is_chosen: list[bool]) -> Events:
        """The calls of some nodes; a hook that repeats the call around it doesn't count as a call."""
        forest, node = self.forest, self.tree.node
        rows = self.is_module & (gather(node, forest.parent) != node)
        rows &= gather(np.array(is_chosen, bool), node, missing=False)
        python = np.where(forest.is_python, forest.row, NONE)[rows]
        return {"python_calls": python, "host_events": forest.host[rows]}


_module_calls = once_per_trace(ModuleCalls._of)


@dataclass(frozen=True)
class _RowNames:
    """The names of a forest's rows, as numbers.

    Attributes:
        code: Index of each row's name, or NONE if it has no node.
        is_module: Whether it is a module's call.
        names: The names.
    """

    code: Rows
    is_module: NDArray[np.bool_]
    names: list[ModuleName]

    @classmethod
    def of(cls, trace: Trace, forest: CallForest, is_hook: NDArray[np.bool_]) -> _RowNames:
        from_python = np.flatnonzero(forest.is_python)
        from_hook = np.flatnonzero(is_hook)
        calls, code = trace.all_python_calls[forest.row[from_python]], np.full(forest.row.size, NONE, np.int32)
        names, code[from_python] = _python_names(calls)
        hooks = trace.all_host_events["name"].gather(forest.host[from_hook])
        texts = hooks.unique(maintain_order=True)
        codes = pl.Series(range(len(names), len(names) + texts.len()), dtype=pl.Int32)
        code[from_hook] = hooks.replace_strict(texts, codes, return_dtype=pl.Int32).to_numpy() if texts.len() else NONE
        names += [_hook_name(text) for text in texts.cast(pl.String)]
        same = _repeating_hooks(forest, from_hook, code, names)
        for module, hook in np.unique(np.column_stack([code[forest.parent[same]], code[same]]), axis=0):
            names[module] = names[module]._replace(attribute=names[hook].attribute)
        code[same] = NONE
        return cls(code, forest.is_python | is_hook, names)


def _python_names(calls: pl.DataFrame) -> tuple[list[ModuleName], Rows]:
    """(The names, the index of each call's): a name of several modules gets the module's number."""
    texts = category_codes(calls["name"]).astype(np.int64) + 1
    ids, module = factorize(calls["module_id"].to_numpy().astype(np.int64))  # no call of a module has a negative one
    _, first, code = np.unique(texts * max(ids.size, 1) + module, return_index=True, return_inverse=True)
    kinds = calls[first].select(pl.col("name").cast(pl.String), "module_id")
    ambiguous = set(kinds["name"].filter(kinds["name"].is_duplicated()))
    names = []
    for name, number in kinds.select("name", "module_id").iter_rows():
        label = (name or "").removeprefix(_MODULE)
        names.append(ModuleName(f"{label} #{number}" if name in ambiguous else label, _INSTANCE.sub("", label)))
    return names, code.astype(np.int32)


def _hook_name(text: str) -> ModuleName:
    """Parse Lightning's annotation: `[pl][module]package.Class: path` or `[pl][profile]hook`."""
    if module := _LIGHTNING_MODULE.fullmatch(text):
        of_class = module["type"].rpartition(".")[2]
        return ModuleName(f"{of_class}: {module['path']}", of_class, module["path"])
    return ModuleName(_LIGHTNING_PREFIX.sub("", text, count=1), None)


def _repeating_hooks(forest: CallForest, hooks: Ints, code: Rows, names: list[ModuleName]) -> Ints:
    """The hooks that repeat the Python call right around them: both are the same module."""
    if not hooks.size:
        return hooks
    classes = np.array([name.of_class or "" for name in names] + [""])
    around = forest.parent[hooks]
    is_same = (gather(forest.is_python, around, missing=False)) & (
        classes[code[hooks]] == classes[gather(code, around)]
    )
    same: Ints = hooks[is_same & (classes[code[hooks]] != "")]
    return same


def _owners(
    trace: Trace, forest: CallForest, tree: MergedTree, is_module: NDArray[np.bool_]
) -> tuple[Rows, NDArray[np.bool_]]:
    """(node, whether it is backward work) of each row of the forest."""
    row = forest.holding_host_rows(trace.all_host_events.height)
    forward = gather(row, gather(forward_ops(trace), forest.host))  # of each row, the row of its forward operator
    forward[is_module] = NONE
    decides = nearest(is_module | (forward >= 0), forest.parent)  # the row whose module each row's work belongs to
    is_backward = gather(forward, decides) >= 0
    for _ in range(_GRADIENTS_OF_GRADIENTS):
        decides = np.where(gather(forward, decides) >= 0, gather(decides, gather(forward, decides)), decides)
    is_unsettled = gather(forward, decides) >= 0
    node = np.where(is_unsettled, NONE, gather(tree.node, decides)).astype(np.int32)
    return node, is_backward & (node >= 0)
