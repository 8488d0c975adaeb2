"""Which calls of different ranks are the same collective.

By group and sequence number if the metadata has both; calls of one number that differ in size or dtype are different
collectives, whose ranks number them differently. Otherwise by group, kind, size and order: over the whole trace if
all ranks made as many such calls in the same steps, else step by step. If a rank made more or fewer of them in a step
than most ranks, one of its rows is lost and it is unknown which: its calls of that kind in that step stay unmatched,
and the others are matched without it.

Sends are matched with receives by their two ranks. Torch numbers a rank's sends and receives together, group by group,
so both ends have the same number only if both ranks make equally many of them: in groups of two, and in rings. If that
holds in every step without lost rows, they are matched by number; else in order within a step.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...arrays.gather import NONE

_ALIKE = ("all_reduce", "broadcast", "reduce", "barrier")  # the message is as large on every rank

MATCHES = {
    "match": pl.Int32,  # number, in order of place, step and first begin
    "place": pl.Int32,
    "step": pl.String,  # null: between the steps
    "kind": pl.String,
    "group": pl.Int32,
    "nth": pl.Int64,
    "bytes": pl.Int64,  # the mean over its ranks
    "size": pl.Int64,  # number of ranks that take part; NONE: unknown
    "members": pl.UInt32,  # number of recorded ranks
}

_KEY = ("place", "group", "kind", "number", "within")


def match_calls(calls: pl.DataFrame, duplicates: Sequence[int] = ()) -> pl.DataFrame:
    """Add `match` to the calls: the same number for the same collective, null for an unmatched call.

    Args:
        calls: CALLS with `member`, `rank`, `place` and `step_name`; rows of a member in order.
        duplicates: Members whose calls aren't matched.
    """
    calls = calls.with_row_index("row").with_columns(bytes_key=_size_key())
    rows = calls.filter(~pl.col("member").is_in(duplicates)) if duplicates else calls
    is_pair = pl.col("kind").is_in(["send", "recv"])
    has_group = pl.col("group") >= 0
    keys_by_number = rows.filter(~is_pair & has_group & (pl.col("nth") >= 0)).select(
        "row",
        "member",
        *_KEY[:3],
        number=pl.concat_str(pl.lit("#"), pl.col("nth").cast(pl.String)),
        within=pl.int_range(pl.len()).over("member", "group", "nth", "kind"),
    )
    keys_by_order = _by_order(rows.filter(~is_pair & has_group & (pl.col("nth") < 0)))
    keys = _refine_keys(pl.concat([keys_by_number, keys_by_order, _pairs(rows.filter(is_pair))]), rows)
    alike = keys.group_by(_KEY).agg(members=pl.col("member").n_unique(), first=pl.col("row").min())
    several = alike.filter(pl.col("members") > 1).sort("first").with_row_index("match")
    numbers = keys.join(several, _KEY, "inner").select("row", pl.col("match").cast(pl.Int32))
    return calls.join(numbers, "row", "left", maintain_order="left").drop("row", "bytes_key")


def _refine_keys(keys: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The keys, with size and dtype in those whose calls differ in them: such calls are different collectives.

    Where calls differ, one without a recorded size or dtype has no key: it could be any of them.
    """
    facts = keys.join(rows.select("row", "bytes_key", "dtype"), "row", "left", maintain_order="left")
    size = pl.when(pl.col("bytes_key") >= 0).then("bytes_key")
    differs = pl.any_horizontal(
        part.n_unique().over(_KEY) > 1 for part in (size.drop_nulls(), pl.col("dtype").drop_nulls())
    )
    fact = pl.concat_str("number", size.cast(pl.String), "dtype", separator="|")
    facts = facts.with_columns(number=pl.when(differs).then(fact).otherwise("number"))
    return facts.filter(pl.col("number").is_not_null()).select(keys.columns)


def _size_key() -> pl.Expr:
    return pl.when(pl.col("kind").is_in(_ALIKE)).then(pl.col("bytes")).otherwise(NONE)


def _by_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Keys of the calls without a number."""
    alike = ["place", "group", "kind", "bytes_key"]
    counts = rows.group_by(*alike, "member").agg(
        calls=pl.len(), steps=pl.col("step_name").drop_nulls().unique().sort().str.join(",")
    )
    same = counts.group_by(alike).agg(is_same=(pl.col("calls").n_unique() == 1) & (pl.col("steps").n_unique() == 1))
    rows = rows.join(same, alike, "left", maintain_order="left", nulls_equal=True)
    whole = rows.filter("is_same").select(
        "row",
        "member",
        *_KEY[:3],
        number=pl.concat_str(pl.lit("="), pl.col("bytes_key").cast(pl.String)),
        within=pl.int_range(pl.len()).over(*alike, "member"),
    )
    return pl.concat([whole, _by_step(rows.filter(~pl.col("is_same")), alike)])


def _by_step(rows: pl.DataFrame, alike: list[str]) -> pl.DataFrame:
    """Keys of calls whose counts differ between ranks; in each step, ranks with a minority count have none."""
    in_step = [*alike, "step_name"]
    rows = rows.filter(pl.col("step_name").is_not_null())
    counts = rows.group_by(*in_step, "member").agg(calls=pl.len())
    usual = (
        counts.group_by(*in_step, "calls")
        .agg(votes=pl.len())
        .sort("votes", "calls", descending=True)
        .unique(in_step, keep="first", maintain_order=True)
        .select(*in_step, "calls")
    )
    regular = counts.join(usual, [*in_step, "calls"], "semi").select(*in_step, "member")
    return rows.join(regular, [*in_step, "member"], "semi", maintain_order="left").select(
        "row",
        "member",
        *_KEY[:3],
        number=pl.concat_str(pl.lit("@"), "step_name", pl.lit("="), pl.col("bytes_key").cast(pl.String)),
        within=pl.int_range(pl.len()).over(*in_step, "member"),
    )


def _pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """Keys of sends and receives: sender and receiver, by number or in order."""
    is_send = pl.col("kind") == "send"
    ends = rows.filter(pl.col("peer") >= 0).with_columns(
        pair=pl.concat_str(
            pl.when(is_send).then("rank").otherwise("peer"),
            pl.lit(">"),
            pl.when(is_send).then("peer").otherwise("rank"),
        )
    )
    pairs_by_number = _pairs_with_equal_numbers(ends, is_send)
    ends_by_number = ends.join(pairs_by_number, _PAIR, "semi", nulls_equal=True, maintain_order="left")
    ends_by_step = ends.join(pairs_by_number, _PAIR, "anti", nulls_equal=True, maintain_order="left")
    return pl.concat(
        [
            ends_by_number.select(
                "row",
                "member",
                "place",
                "group",
                kind=pl.lit("transfer"),
                number=pl.concat_str("pair", pl.lit("#"), pl.col("nth").cast(pl.String)),
                within=pl.int_range(pl.len()).over(*_PAIR, "nth", "kind"),
            ),
            _pairs_by_step(ends_by_step, is_send),
        ]
    )


_PAIR = ["place", "group", "pair"]


def _pairs_with_equal_numbers(ends: pl.DataFrame, is_send: pl.Expr) -> pl.DataFrame:
    """The pairs whose sends and receives have the same numbers in every step with equally many of both."""
    send_numbers, receive_numbers = (
        pl.col("nth").filter(side).sort().cast(pl.String).str.join(",") for side in (is_send, ~is_send)
    )
    steps = (
        ends.filter(pl.col("step_name").is_not_null())
        .group_by(*_PAIR, "step_name")
        .agg(
            is_whole=is_send.sum() == (~is_send).sum(),
            is_same=send_numbers == receive_numbers,
            least=pl.col("nth").min(),
        )
    )
    return (
        steps.group_by(_PAIR)
        .agg(
            has_equal_numbers=pl.col("is_whole").any() & (pl.col("is_same") | ~pl.col("is_whole")).all(),
            least=pl.col("least").min(),
        )
        .filter(pl.col("has_equal_numbers") & (pl.col("least") >= 0))
        .select(_PAIR)
    )


def _pairs_by_step(ends: pl.DataFrame, is_send: pl.Expr) -> pl.DataFrame:
    """Keys of sends and receives in order, in steps with equally many of both."""
    ends = ends.filter(pl.col("step_name").is_not_null())
    alike = [*_PAIR, "step_name"]
    both = (
        ends.group_by(alike)
        .agg(sends=is_send.sum(), receives=(~is_send).sum())
        .filter(pl.col("sends") == pl.col("receives"))
    )
    return ends.join(both, alike, "semi", maintain_order="left").select(
        "row",
        "member",
        "place",
        "group",
        kind=pl.lit("transfer"),
        number=pl.concat_str("pair", pl.lit("@"), "step_name"),
        within=pl.int_range(pl.len()).over(*alike, "kind"),
    )


def matches(calls: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The frame MATCHES of calls that were matched."""
    sizes = groups.select("size").with_row_index("group").with_columns(pl.col("group").cast(pl.Int32))
    is_pair = pl.col("kind").is_in(["send", "recv"])
    return (
        calls.filter(pl.col("match").is_not_null())
        .group_by("match")
        .agg(
            pl.col("place").first(),
            step=pl.col("step_name").drop_nulls().mode(maintain_order=True).first(),
            kind=pl.when(is_pair.first()).then(pl.lit("transfer")).otherwise(pl.col("kind").first()),
            group=pl.col("group").first(),
            nth=pl.col("nth").first(),
            bytes=pl.col("bytes").filter(pl.col("bytes") >= 0).mean().round().cast(pl.Int64).fill_null(NONE),
            members=pl.col("member").n_unique(),
        )
        .join(sizes, "group", "left")
        .with_columns(size=pl.when(pl.col("kind") == "transfer").then(2).otherwise(pl.col("size").fill_null(NONE)))
        .sort("match")
        .select(*MATCHES)
        .cast(pl.Schema(MATCHES))
    )
