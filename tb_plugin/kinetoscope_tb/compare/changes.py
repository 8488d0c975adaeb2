"""What changed most between two traces, of any kind: categories, kernels, operators, idle causes, environment.

Times are per step, as in every comparison; if only one side marks steps, shares are compared instead. Kinds overlap: a
slower kernel makes its operator and the category longer too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ..errors import BadParameter
from ..measures.calls.kernel_names import labels_of_kernels
from ..measures.recording.contents import has_device_events
from ..measures.time.step_subset import counted_steps, has_steps
from ..names.text import capitalize, code, visible
from ..table import DURATION, FRACTION, NUMBER, TEXT, Column, Table
from ..trace import Trace
from ..view import View
from .comparison import BEYOND, Basis, compare, verdict
from .headline import growth_text, headline, pair_of_times
from .host_changes import ANNOTATION, FUNCTION, HostChange, host_changes, sentences
from .statistics import Spread, margin

ID = "changes"  # what the command line and HTTP call it, where they name a view
MOST = 20
_LEAST_FRAC = 0.01  # of the largest change of its unit: smaller ones are left out
KINDS = {"overview": "category", "kernels": "kernel", "operators": "operator"}
OF_COMMUNICATION = "communication"
_KINDS_OF_CAUSES = (OF_COMMUNICATION, FUNCTION, ANNOTATION)
_MOSTLY = 0.5  # of the largest change
_ALWAYS_DIFFER = ("Recorded", "Events", "File", "Trace id")
_NO_CAUSES = ("window_ns", "idle_ns", "longest_ns", "busy_ns", "host_late_ns")  # host late is split into its parts


class Changes(Table):
    """What changed most between two recordings, of any kind."""

    key, weight = ("kind", "name"), "delta_ns"

    kind = Column(
        TEXT,
        "category, kernel, operator, idle cause, environment; function or annotation: what makes the host's part of "
        "the step longer or shorter, by its time while no device works; communication: where all ranks are recorded, "
        "how much of its exposed time is waiting for other ranks, and how much moves data.",
        words={"category": "step part", "idle cause": "idle time"},
    )
    name = Column(TEXT, "Its name.")
    base_ns = Column(DURATION, "Time per step in the base.", adds_up=False)
    new_ns = Column(DURATION, "Time per step in the new.", adds_up=False)
    delta_ns = Column(DURATION, "New − base.", adds_up=False)
    base_frac = Column(FRACTION, "Share in the base, where times can't be compared.")
    new_frac = Column(FRACTION, "Share in the new, where times can't be compared.")
    delta_frac = Column(FRACTION, "New − base.")
    ratio = Column(NUMBER, "New / base; missing if the base is 0 or missing.")
    base_value = Column(TEXT, "In the base, of the environment.")
    new_value = Column(TEXT, "In the new, of the environment.")
    verdict = Column(
        TEXT,
        "beyond noise: beyond the spread of these recordings' steps; another recording may differ as much. "
        "not certain: within it. unknown: not enough data, or different work. changed: a fact.",
    )


@dataclass(frozen=True)
class ChangeList:
    """What changed.

    Args:
        step: How the average step changed, in a sentence.
        causes: Sentences about who does it: functions of the program, ranks of the run.
        basis: The steps that the values refer to.
        frame: CHANGES, the largest first, then the environment.
        labels: The readable names of kernels.
    """

    step: str
    causes: Sequence[str]
    basis: Basis
    frame: pl.DataFrame
    labels: Mapping[str, str]

    @property
    def headline(self) -> str:
        """What changed, by how much, whether that is certain, and where: the largest change, unless it is a cause."""
        return " ".join(filter(None, [self.step, self._largest_change(), *self.causes]))

    def _largest_change(self) -> str:
        """The largest change that the steps don't explain; empty where nothing is known of their variation."""
        beyond = self.frame.filter(pl.col("verdict") == BEYOND, pl.col("delta_ns").is_not_null())
        if beyond.is_empty():
            return "No single change is beyond noise." if "not certain" in self.frame["verdict"] else ""
        kind, name, base_ns, new_ns = beyond.select("kind", "name", "base_ns", "new_ns").row(0)
        if self.causes and kind in _KINDS_OF_CAUSES:
            return ""
        what = name if kind in Changes.kind.words else code(visible(self.labels.get(name, name)))
        growth = f"{pair_of_times(base_ns, new_ns)}, {growth_text(base_ns, new_ns)}"
        return f"Largest change beyond noise: {what} ({Changes.kind.words.get(kind, kind)}), {growth}."


def changes(views: Mapping[str, View], base: Trace, new: Trace) -> ChangeList:
    """The largest changes of every kind.

    Args:
        views: The views by id, of which the ones that it needs are computed for both sides.
        base: The trace to compare with.
        new: The trace that may have changed.
    """
    of_views = {name: compare(views[name], base, new) for name in KINDS if not _lacks(views[name], base, new)}
    rows = [_rows(KINDS[name], comparison.frame, comparison.columns[0]) for name, comparison in of_views.items()]
    basis = of_views["overview"].basis
    rows += _idle_causes(views["idle"], base, new, basis)
    of_host = host_changes(base, new) if has_steps(base) and has_steps(new) and not basis.why_uncertain else []
    rows += [_of_function(change) for change in of_host]
    amounts = pl.concat([pl.DataFrame(schema=Changes.schema()), *rows], how="diagonal")
    amounts = amounts.filter(pl.col("name") != "Step")
    both = pl.concat([_in_order(amounts), _facts(views["environment"], base, new)], how="diagonal")
    why_only_shares = basis.why_not if basis.is_of_shares else ""
    uses_device = has_device_events(base) or has_device_events(new)
    step = headline(base, new, basis.why_uncertain, why_only_shares)
    causes = sentences(of_host, uses_device=uses_device)
    frame = Changes.of(both.select(Changes.schema().names()))
    return ChangeList(step, causes, basis, frame, labels_of_kernels(base, new))


def _in_order(amounts: pl.DataFrame) -> pl.DataFrame:
    """The largest changes of all kinds, the largest first.

    What the other kinds say of communication includes its waiting, and a function of the program is what a category
    consists of, so these come first where they are most of the largest.
    """
    size = pl.coalesce(pl.col("delta_ns").abs().cast(pl.Float64), pl.col("delta_frac").abs())
    largest = amounts.with_columns(size=size).filter(
        (pl.col("size") > 0) & (pl.col("size") >= _LEAST_FRAC * pl.col("size").max())
    )
    is_large = pl.col("size") >= _MOSTLY * pl.col("size").max()
    is_cause = pl.col("kind").is_in(_KINDS_OF_CAUSES) & is_large
    order = largest.with_columns(is_cause=is_cause)
    order = order.sort("is_cause", "size", "kind", "name", descending=[True, True, False, False])
    return order.head(MOST).drop("size", "is_cause")


def with_parts_of_communication(result: ChangeList, base: pl.DataFrame, new: pl.DataFrame) -> ChangeList:
    """The changes with those of the parts of communication among them.

    Args:
        result: The changes, of times.
        base: A column for each part, in ns, and a row for each complete step.
        new: The same.
    """
    parts = _of_steps(OF_COMMUNICATION, [base, new], is_judged=not result.basis.why_uncertain)
    is_fact = pl.col("kind") == "environment"
    amounts = pl.concat([result.frame.filter(~is_fact), parts], how="diagonal")
    frame = pl.concat([_in_order(amounts), result.frame.filter(is_fact)], how="diagonal")
    return replace(result, frame=Changes.of(frame.select(Changes.schema().names())))


def _of_steps(kind: str, sides: Sequence[pl.DataFrame], *, is_judged: bool) -> pl.DataFrame:
    """Times of steps, a column for each name, compared."""
    values = [side.to_numpy().astype(np.float64) for side in sides]
    means, limit = [value.mean(axis=0) for value in values], None
    if is_judged:
        spreads = [Spread.of(value.T) for value in values]
        limit = margin(spreads[0], spreads[1], means[1] - means[0])
    return _compare_means(kind, sides[0].columns, means[0], means[1], limit, unit="ns")


def _of_function(change: HostChange) -> pl.DataFrame:
    """The time of a function while no device works."""
    sides = [pl.DataFrame({change.name: own_ns}) for own_ns in (change.base_ns, change.new_ns)]
    return _of_steps(change.kind, sides, is_judged=True)


def _lacks(view: View, base: Trace, new: Trace) -> bool:
    return view.is_missing(base) or view.is_missing(new)


def _rows(kind: str, frame: pl.DataFrame, column: Column) -> pl.DataFrame:
    """The compared rows of a view as CHANGES."""
    unit = "ns" if column.kind is DURATION else "frac"
    name = "category" if kind == "category" else "name"
    if column.kind not in (DURATION, FRACTION):
        raise BadParameter(f"{column.name!r} is neither a time nor a share")
    return frame.select(
        pl.lit(kind).alias("kind"),
        pl.col(name).alias("name"),
        *(pl.col(f"{side}_{column.name}").fill_null(0).alias(f"{side}_{unit}") for side in ("base", "new")),
        pl.col(f"delta_{column.name}").alias(f"delta_{unit}"),
        pl.col(f"{column.name}_ratio").alias("ratio"),
        pl.col(f"{column.name}_verdict").alias("verdict"),
    ).filter(pl.col(f"delta_{unit}").is_not_null())


def _idle_causes(view: View, base: Trace, new: Trace, basis: Basis) -> list[pl.DataFrame]:
    """The idle time of all devices by cause, per step, or as a share of the recording."""
    if _lacks(view, base, new):
        return []
    sides = [_causes_by_step(view, trace) for trace in (base, new)]
    titles = {column.name: column.title for column in view.table.columns}
    causes = [side.drop("window_ns").rename(lambda name: titles[name] or _words(name)) for side in sides]
    if basis.is_of_shares:
        shares = [
            cause.to_numpy().astype(np.float64).sum(axis=0) / max(1, side["window_ns"].sum())
            for cause, side in zip(causes, sides, strict=True)
        ]
        return [_compare_means("idle cause", causes[0].columns, shares[0], shares[1], None)]
    is_judged = has_steps(base) and has_steps(new) and not basis.why_uncertain
    return [_of_steps("idle cause", causes, is_judged=is_judged)]


def _words(name: str) -> str:
    """The title of a column that has none of its own, such as `Launch latency`."""
    return capitalize(name.removesuffix("_ns").replace("_", " "))


def _causes_by_step(view: View, trace: Trace) -> pl.DataFrame:
    """Of each counted step: its window and the idle time of all devices by cause."""
    names = trace.steps["name"].gather(counted_steps(trace)).to_list()
    frame = view.run(trace, per="step").filter((pl.col("scope") == "device") & pl.col("step").is_in(names))
    causes = [name for name in frame.columns if name.endswith("_ns") and name not in _NO_CAUSES]
    return frame.group_by("step", maintain_order=True).agg(pl.col("window_ns", *causes).sum()).drop("step")


def _compare_means(
    of: str, names: list[str], base: np.ndarray, new: np.ndarray, limit: np.ndarray | None, unit: str = "frac"
) -> pl.DataFrame:
    dtype = pl.Int64 if unit == "ns" else pl.Float64
    noise = np.full(len(names), np.nan) if limit is None else limit
    frame = pl.DataFrame({"name": names, "base": base, "new": new, "noise": noise}).with_columns(
        pl.col("base", "new").round().cast(dtype) if unit == "ns" else pl.col("base", "new"),
        pl.col("noise").fill_nan(None),
        kind=pl.lit(of),
    )
    frame = frame.with_columns(delta=pl.col("new") - pl.col("base")).with_columns(
        ratio=pl.when(pl.col("base") != 0).then(pl.col("new") / pl.col("base")), verdict=verdict()
    )
    return frame.drop("noise").rename({name: f"{name}_{unit}" for name in ("base", "new", "delta")})


def _facts(view: View, base: Trace, new: Trace) -> pl.DataFrame:
    """The facts of the environment that differ."""
    frame = compare(view, base, new).frame.filter(
        (pl.col("value_verdict") == "changed") & ~pl.col("fact").is_in(_ALWAYS_DIFFER)
    )
    return frame.select(
        pl.lit("environment").alias("kind"),
        pl.col("fact").alias("name"),
        "base_value",
        "new_value",
        pl.col("value_verdict").alias("verdict"),
    )
