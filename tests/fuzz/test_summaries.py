"""Made-up summaries: each is refused, or all views of its run can be made; whatever lies in a logdir, they can."""

import json
import random
import struct
import zlib
from dataclasses import replace

import numpy as np
import polars as pl

from kinetoscope_tb.discovery import Logdir, list_traces
from kinetoscope_tb.distributed.model import FRAMES, TRAFFIC
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.validation import problem_of
from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.engine.cache import pack
from kinetoscope_tb.engine.cache.summary_entry import PackedSummary, pack_summary
from kinetoscope_tb.engine.cache.values import BrokenEntry
from kinetoscope_tb.engine.executors import local_executors
from kinetoscope_tb.engine.summary_loader import ExecutorFactory, files_of, load_summaries, ranks_of
from kinetoscope_tb.views import RUN_VIEWS
from kinetoscope_tb.web import encode
from kinetoscope_tb.web.json_text import json_text
from support.apart import run_apart
from support.entries import LENGTHS, NUMBERS, change_a_field, damaged, made_up
from support.fuzzing import ODD_VALUES, case_numbers
from support.simulated import Truth, simulated, summary_of, write

RANKS = 3
RUN = simulated(Truth(ranks=RANKS, steps=2, groups=(("all", (0, 1, 2)), ("some", (0, 1)))))
SENT = pl.DataFrame([(1, "send", 1000, 2), (2, "send", 10, 1)], schema=TRAFFIC, orient="row")
MADE = [replace(summary_of(RUN, rank), traffic=SENT) for rank in range(RANKS)]
for rank, one in enumerate(MADE):
    one.facts["clock"] = {"offset_ns": 5 * rank, "error_ns": 3}
WHOLE = pack_summary(MADE[0]).data


def test_made_up_summaries_break_nothing(tmp_path):
    run_apart(__file__, case_numbers(0, 1, share=0.15), tmp_path)


def prepare(folder):
    """A run with a pack, and everything compiled."""
    write(RUN, folder / "run")
    executors = ExecutorFactory(local_executors(1).make, 1)
    listing = list_traces([Logdir(str(folder))])
    files = files_of(listing, listing.files[0], "span")
    outcomes = dict(load_summaries(files, None, executors))
    with (folder / "run" / "whole").open("wb") as file:
        file.write(pack.MAGIC)
        places = []
        for one in files:
            data = outcomes[one].data
            key = pack.content_key(one.path, one.bytes)
            stamp, start = pack.as_stored(one.stamp), file.tell()
            name = one.path.rpartition("/")[2]
            places.append(pack.Record(name, one.bytes, stamp, key, start, len(data), zlib.crc32(data)))
            file.write(data)
        pack.write_end(file, places)
    look_at(MADE[0])
    for number in range(30):
        case(number, folder)


def case(number, folder):
    """One made-up summary or pack."""
    numbers = random.Random(number)
    kind = numbers.randrange(3)
    if kind == 0:
        summary = odd_summary(numbers)
        if not problem_of(summary):
            data = pack_summary(summary).data
            look_at(PackedSummary(data).summary)
        return
    if kind == 1:
        try:
            summary = PackedSummary(made_up(WHOLE, numbers)).summary
        except BrokenEntry:
            return
        look_at(summary)
        return
    path = folder / "run" / pack.FILE_NAME
    odd_pack((folder / "run" / "whole").read_bytes(), path, numbers)
    listing, notes = list_traces([Logdir(str(folder))]), []
    files = files_of(listing, listing.files[0], "span")
    executors = ExecutorFactory(local_executors(1).make, 1)
    ranks = ranks_of(listing, files[0], files, load_summaries(files, None, executors, on_problem=notes.append), notes)
    assert [member.problem for member in ranks.members] == [""] * RANKS
    health = RUN_VIEWS["run_health"].run(ranks)
    assert bool(notes) == ("summaries_unused" in health["rule"].to_list())
    assert all(f"run/{pack.FILE_NAME}" in note or pack.FILE_NAME in note for note in notes)
    assert not any(str(folder) in note for note in notes)


def look_at(summary):
    """Make every view of a run with this summary in it."""
    members = [Member(f"rank{i}", "1", 0, one) for i, one in enumerate([summary, *MADE[1:]])]
    ranks = Ranks("run", tuple(members))
    with np.errstate(all="ignore"):
        for view in RUN_VIEWS.values():
            json_text(encode.view_answer(view, compute(view, ranks, {})))


def odd_summary(numbers):
    """One whose facts or numbers are odd; of the right types, so that they can be written."""
    made = MADE[0]
    if numbers.randrange(2):
        facts = json.loads(json.dumps({**made.facts, "ranks": [0, 1], "window": [0, 10**9], "host": "node0"}))
        facts["mesh"] = {"dims": ["dp"], "coordinates": [0]}
        for _ in range(numbers.choice((1, 1, 3))):
            change_a_field(facts, numbers)
        return replace(made, facts=facts)
    name = numbers.choice([name for name in FRAMES if getattr(made, name).height])
    frame = getattr(made, name)
    for _ in range(numbers.choice((1, 1, 3))):
        frame = with_odd_column(frame, numbers)
    return replace(made, **{name: frame})


def with_odd_column(frame, numbers):
    column = numbers.choice(frame.columns)
    dtype, values = frame.schema[column], frame[column].to_list()
    if numbers.randrange(6) == 0:
        return frame.sample(fraction=1, shuffle=True, seed=numbers.randrange(2**31))
    for _ in range(numbers.choice((1, len(values)))):
        at = numbers.randrange(len(values))
        if dtype == pl.String:
            texts = [v for v in ODD_VALUES if isinstance(v, str) and "\ud800" not in v]
            values[at] = numbers.choice([*texts, None, "0-1048575", "0-9999999/3", "1-", "send", "recv", "broadcast"])
        elif dtype == pl.Boolean:
            values[at] = not values[at]
        else:
            width = 31 if dtype == pl.Int32 else 63
            fits = [n for n in (*NUMBERS, 2**60, -(2**60), 2**50, 2**20 - 1) if -(2**width) <= n < 2**width]
            odd = numbers.choice(fits)
            values[at] = [odd, *values[at][1:]] if isinstance(dtype, pl.Array) else odd
    return frame.with_columns(pl.Series(column, values, dtype))


def odd_pack(whole, path, numbers):
    """Write a pack that was changed in one of many ways."""
    kind = numbers.randrange(5)
    path.unlink(missing_ok=True)
    if kind == 0:
        path.write_bytes(damaged(whole, numbers))
        return
    tail = struct.Struct("<Q18s")
    (length, _), places = tail.unpack(whole[-tail.size :]), list(pack.records_in(written(path, whole)).values())
    begin = len(whole) - tail.size - length
    if kind == 1:
        path.write_bytes(whole[: -tail.size] + tail.pack(numbers.choice(LENGTHS) % 2**64, pack.MAGIC))
    elif kind == 2:
        index = made_up(whole[begin : begin + length], numbers, ("version",))
        path.write_bytes(whole[:begin] + index + tail.pack(len(index), pack.MAGIC))
    elif kind == 3:
        at = numbers.randrange(len(places))
        field = numbers.choice(("start", "length", "checksum", "bytes"))
        odd = numbers.choice([n for n in LENGTHS if -(2**63) <= n < 2**63])
        places[at] = replace(places[at], **{field: odd})
        put_together(path, whole[:begin], places)
    else:
        at = numbers.randrange(len(places))
        data = made_up(whole[places[at].start : places[at].start + places[at].length], numbers)
        start = numbers.choice((begin, 40 << 30))  # the file has holes
        places[at] = replace(places[at], start=start, length=len(data), checksum=zlib.crc32(data))
        put_together(path, whole[:begin], places, start, data)


def written(path, data):
    path.write_bytes(data)
    return str(path)


def put_together(path, begin, places, start=None, data=b""):
    with path.open("wb") as file:
        file.write(begin)
        if start is not None:
            file.seek(start)
            file.write(data)
        pack.write_end(file, places)
