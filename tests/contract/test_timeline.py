"""The timeline's routes, asked as the page asks them."""

import gzip
import json
import struct

import pytest

from contract.running import put, serving
from support.build import TraceBuilder
from support.simulated import Truth, simulated, write
from support.waiting import wait_for

QUERY = {"run": "run", "worker": "rank0", "span": "default"}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timeline") / "run"
    put(folder, "rank0.pt.trace.json")
    write(simulated(Truth(ranks=2, steps=2, late={(1, None): 3_000_000})), folder.parent / "pair")
    return folder


@pytest.fixture(scope="module")
def server(logdir):
    with serving(f"--logdir={logdir.parent}") as running:
        yield running


@pytest.fixture(scope="module")
def meta(server):
    return server.settled("timeline", **QUERY).json


@pytest.fixture(scope="module")
def ask(server, meta):
    """Asks a route about the trace as the listing knows it."""
    return lambda route, **query: server.settled(route, **QUERY, stamp=meta["stamp"], **query).json


def bytes_of(server, meta, route, **query):
    answer = wait_for(
        lambda: server.plugin(route, **QUERY, stamp=meta["stamp"], **query),
        is_right=lambda answer: (
            answer.headers["Content-Type"] == "application/octet-stream" or b"loading" not in answer.body
        ),
    )
    assert "immutable" in answer.headers["Cache-Control"], answer.body
    packed = answer.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(answer.body) if packed else answer.body


def test_the_listing_says_what_there_is(meta):
    assert meta["state"] == "ready"
    assert meta["slices"] == sum(track["slices"] for track in meta["tracks"])
    assert [step["name"] for step in meta["steps"]] == ["5", "6"]
    assert {(c["id"], c["name"], c["device"]) for c in meta["counters"]} == {
        (0, "Allocated memory", "cpu"),
        (1, "GPU utilization", "GPU 0"),
        (2, "Queue length", "GPU 0"),
    }


def test_slices_are_found_and_told_and_lead_to_each_other(ask):
    hits = ask("timeline/find", find=json.dumps({"text": "sgemm"}), direction="next")
    (name, calls, total_ns), *others = hits["names"]
    assert (hits["count"], name, calls, others, hits["place"]) == (2, "ampere_sgemm_128x64_tn", 2, [], 0)
    assert total_ns > hits["slice"]["dur_ns"]
    assert sum(hits["histogram"]) == 2
    after = ask("timeline/find", find='{"text":"sgemm"}', at_ns=str(hits["slice"]["start_ns"]), direction="next")
    assert after["place"] == 1
    assert ask("timeline/find", find='{"text":"sgemm"}', place="1")["slice"] == after["slice"]
    assert ask("timeline/find", find='{"text":"sgemm"}')["slice"] is None
    details = ask("timeline/slice", slice=str(hits["slice"]["slice"]))
    assert {key: details[key] for key in hits["slice"]} == hits["slice"]
    assert details["launched_by"]["op"]["name"] == "aten::mm"
    op = ask("timeline/slice", slice=str(details["launched_by"]["op"]["slice"]))
    assert op["launched"]["slices"] == [hits["slice"]]
    assert {"view": "operators", "title": "Operators", "filter": "aten::mm"} in op["rows"]
    of_row = ask("timeline/find", find=json.dumps({"view": "operators", "name": "aten::mm"}))
    assert of_row["count"] == 2


def test_the_calls_behind_a_row_have_their_origins_and_a_slowest_one(ask):
    row = ask("timeline/row", find=json.dumps({"view": "kernels", "name": "ampere_sgemm_128x64_tn"}))
    assert (row["durations"]["count"], row["durations"]["total_ns"]) == (2, 600_000)
    assert ask("timeline/slice", slice=str(row["durations"]["slowest"]))["dur_ns"] == row["slowest"]["dur_ns"]
    assert [(one["kind"], one["text"], one["calls"]) for one in row["origins"]] == [("operator", "aten::mm", 2)]


def test_an_area_is_a_table(ask, meta):
    tracks = ",".join(str(place) for place, track in enumerate(meta["tracks"]) if track["part"] == "work")
    table = ask("timeline/area", from_ns="0", to_ns="1000000", tracks=tracks)
    assert [column["name"] for column in table["columns"]][:5] == ["name", "category", "process", "self_ns", "total_ns"]
    assert table["data"]["name"] == ["ampere_sgemm_128x64_tn", "Memcpy HtoD (Pageable -> Device)"]
    assert table["data"]["total_ns"] == [300_000, 20_000]
    assert ask("timeline/area", from_ns="-5", to_ns="10", tracks="")["data"]["name"] == []


def test_an_area_is_grouped_drawn_as_flames_and_has_counters(ask, meta):
    where = {"from_ns": "0", "to_ns": "1000000"}
    tracks = ",".join(map(str, range(len(meta["tracks"]))))
    by_operator = ask("timeline/area", **where, tracks=tracks, by="operator")["data"]
    on_device = [i for i, is_device in enumerate(by_operator["is_device"]) if is_device]
    assert {by_operator["name"][i]: by_operator["self_ns"][i] for i in on_device}["aten::mm"] == 300_000
    flames = ask("timeline/area/flame", **where, tracks=tracks, side="device")["data"]
    assert flames["name"][0] == "stream 7"
    assert (flames["parent"][0], flames["total_ns"][0]) == (None, 320_000)
    counters = ask("timeline/area/counters", **where)["counters"]
    assert [one["id"] for one in counters] == [one["id"] for one in meta["counters"]]
    (busy,) = [one["mean"] for one in counters if meta["counters"][one["id"]]["name"] == "GPU utilization"]
    assert busy == pytest.approx(300_000 / 950_000)  # of what is in the recording, from the first launch on


def test_a_critical_path_comes_piece_by_piece(ask, meta):
    path = ask("timeline/path", from_ns="0", to_ns=str(meta["window"][1]))
    ends = [(one["from_ns"], one["to_ns"]) for one in path["pieces"]]
    assert path["state"] == "ready"
    assert ends == sorted(ends)
    assert sum(end - start for start, end in ends) == sum(s["end_ns"] - s["start_ns"] for s in meta["steps"])
    assert {"from_ns", "to_ns", "part", "reason", "slice", "count"} == set(path["pieces"][0])


def test_what_of_the_path_across_ranks_lies_on_each_worker_adds_up_to_the_steps_of_the_last_one(server):
    steps, path_ns, numbers = [], 0, []
    for worker in ("rank0", "rank1"):
        query = {"run": "pair", "worker": worker, "span": "1"}
        meta = server.settled("timeline", **query).json
        window = {"stamp": meta["stamp"], "from_ns": "-1000000000", "to_ns": str(meta["window"][1])}
        main = {"main_worker": "rank0", "main_span": "1"}
        path = server.settled("timeline/path_across_ranks", **query, **window, **main).json
        path_ns += sum(one["to_ns"] - one["from_ns"] for one in path["pieces"])
        numbers += [number for one in path["pieces"] for number in range(one["first"], one["last"] + 1)]
        steps.append([step["end_ns"] - step["start_ns"] for step in meta["steps"]])
        shares = server.settled("timeline/path_shares", **query, **window).json
        assert shares["notes"] == []
        assert shares["shares"][0]["worker"] == "rank1"
        keys = {"from_ns", "to_ns", "part", "reason", "slice", "count", "step", "first", "last", "since", "until"}
        assert keys == set(path["pieces"][0])
    assert set(numbers) == set(range(max(numbers) + 1))
    assert path_ns in {a + b for a in next(zip(*steps, strict=True)) for b in list(zip(*steps, strict=True))[1]}


def test_a_run_of_one_worker_has_no_path_across_ranks(ask):
    whole = {"from_ns": "0", "to_ns": "1000"}
    for route, more in (("path_shares", {}), ("path_across_ranks", {"main_worker": "rank0", "main_span": "default"})):
        answer = ask(f"timeline/{route}", **whole, **more)
        assert answer["state"] == "missing"
        assert "two ranks" in answer["hint"]


def test_tiles_of_what_was_found_and_of_counters_are_bytes(server, meta):
    tracks = {track["part"]: place for place, track in enumerate(meta["tracks"])}
    key = f"{tracks['work']}.20.0"
    tile = bytes_of(server, meta, "timeline/tiles", k=key, find='{"category":"Memcpy"}')
    assert struct.unpack_from("<4I", tile) == (1, len(tile) - 8, 1, 2)  # a tile; its bytes; a row; two entries
    drawn = bytes_of(server, meta, "timeline/counters", k="1.20.0,2.20.0")
    assert len(drawn) == 2 * 3 * 512 * 8
    (busy,) = struct.unpack_from("<d", drawn)
    assert busy == pytest.approx(300_000 / (2**20 - 50_000))  # it isn't in the recording whether the GPU is busy before


def test_slices_of_a_trace_that_changed_are_no_longer_told(server):
    for route, query in (
        ("timeline/slice", {"slice": "0"}),
        ("timeline/find", {"find": '{"text":"a"}'}),
        ("timeline/row", {"find": '{"view":"kernels","name":"a"}'}),
        ("timeline/row/ranks", {"find": '{"view":"kernels","name":"a"}'}),
        ("timeline/row/advice", {"find": '{"view":"kernels","name":"a"}'}),
        ("timeline/area", {"from_ns": "0", "to_ns": "1", "tracks": "0"}),
        ("timeline/area/flame", {"from_ns": "0", "to_ns": "1", "tracks": "0", "side": "host"}),
        ("timeline/area/counters", {"from_ns": "0", "to_ns": "1"}),
        ("timeline/path", {"from_ns": "0", "to_ns": "1"}),
        ("timeline/path_shares", {"from_ns": "0", "to_ns": "1"}),
        ("timeline/path_across_ranks", {"from_ns": "0", "to_ns": "1", "main_worker": "rank0", "main_span": "default"}),
        ("timeline/counters", {"k": "0.8.0"}),
        ("timeline/tiles", {"k": "0.8.0", "find": '{"text":"a"}'}),
        ("timeline/labels", {"page": "0"}),
    ):
        answer = server.settled(route, **QUERY, stamp="00000000", **query)
        assert (answer.status, answer.json["code"]) == (409, "changed"), route


@pytest.mark.parametrize(
    ("route", "query"),
    [
        ("slice", {"slice": "-1"}),
        ("slice", {"slice": "1000000"}),
        ("slice", {}),
        ("find", {"find": "x"}),
        ("find", {"find": '{"text":"re:("}'}),
        ("find", {"find": '{"nobody":"knows"}'}),
        ("find", {"find": '{"text":"a"}', "direction": "up"}),
        ("find", {"find": '{"text":"a"}', "at_ns": "soon"}),
        ("find", {"find": '{"text":"a"}', "place": "1", "at_ns": "1"}),
        ("tiles", {"k": "0.8.0", "find": "{}"}),
        ("tiles", {"k": "0.8"}),
        ("area", {"from_ns": "5", "to_ns": "1", "tracks": "0"}),
        ("area", {"from_ns": "0", "to_ns": "1", "tracks": "99"}),
        ("area", {"from_ns": "0", "to_ns": "1", "tracks": "a"}),
        ("area", {"from_ns": "0", "to_ns": "1.5", "tracks": "0"}),
        ("area", {"from_ns": "0", "to_ns": "1", "tracks": "0", "by": "color"}),
        ("area/flame", {"from_ns": "0", "to_ns": "1", "tracks": "0"}),
        ("area/flame", {"from_ns": "0", "to_ns": "1", "tracks": "0", "side": "left"}),
        ("area/counters", {"from_ns": "5", "to_ns": "1"}),
        ("counters", {"k": "99.8.0"}),
        ("counters", {"k": "0.60.0"}),
        ("counters", {"k": "all"}),
        ("labels", {"page": "first"}),
    ],
)
def test_what_is_no_question_is_told(server, meta, route, query):
    answer = server.settled(f"timeline/{route}", **QUERY, stamp=meta["stamp"], **query)
    assert (answer.status, answer.json["code"]) == (400, "bad_parameter")
    assert answer.json["message"]


def test_a_trace_without_anything_has_an_empty_timeline(server, logdir):
    put(logdir, "rank9.pt.trace.json", text=TraceBuilder().text())
    query = {**QUERY, "worker": "rank9"}
    wait_for(lambda: server.plugin("runs"), is_right=lambda answer: b"rank9" in answer.body)
    meta = server.settled("timeline", **query).json
    assert (meta["slices"], meta["tracks"], meta["counters"]) == (0, [], [])
    hits = server.settled("timeline/find", **query, stamp=meta["stamp"], find='{"text":"a"}', direction="next").json
    assert (hits["count"], hits["slice"], len(hits["histogram"])) == (0, None, 512)
    area = {"from_ns": "0", "to_ns": "1", "tracks": ""}
    assert server.settled("timeline/area", **query, stamp=meta["stamp"], **area).json["data"]["name"] == []
