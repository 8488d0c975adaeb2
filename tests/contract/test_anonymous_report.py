"""`kinetoscope report --anonymous`: nothing of the owner is left, and everything else is as it was."""

from __future__ import annotations

import json
import pickle
import re

import pytest

from contract.test_report import content
from kinetoscope_tb.export.anonymous import anonymous_trace
from kinetoscope_tb.export.pseudonyms import Pseudonyms
from kinetoscope_tb.reader import read
from support.build import TraceBuilder
from support.snapshots import Allocator, frames_of

PACKAGES = "/home/me/secret/venv/lib/python3.11/site-packages"
STACK = f"{PACKAGES}/torch/nn/modules/linear.py(125): forward;/home/me/secret/secret.py(7): a_secret"


def recording(rank: int) -> TraceBuilder:
    about = {
        "host": "secret-host",
        "run": "secret-run",
        "global_rank": rank,
        "world_size": 2,
        "torch_version": "2.13.0",
    }
    about |= {"markers": {"secret range": {}}, "counters": {"secret/s": {"unit": "bytes"}}}
    trace = TraceBuilder(
        kinetoscope=about, host_name="secret-host", traceName="/home/me/secret/trace", customer="secret"
    )
    for number in range(4):
        at = number * 10_000
        trace.step(number, at, 10_000).annotation("secret range", at + 100, 9_000)
        trace.op("aten::mm", at + 200, 900, **{"Call stack": STACK}).op("secret::op", at + 2_000, 900 + 4_000 * rank)
        trace.python("/home/me/secret/job/secret.py(12): load_secret", at + 100, 9_000)
        trace.module("SecretNet", at + 150, 8_000).python("torch/nn/functional.py(9): linear", at + 300, 100)
        trace.python("<built-in method read of secret_io.Secret object at 0x7f>", at + 3_000, 100)
        trace.launch(at + 350, 20, number + 1).kernel("gemm", at + 400, 600, number + 1)
    trace.event("", "secret/s", 5, None, ph="C", **{"secret series": 1}).event("", "cpu", 5, None, ph="C", used=0.5)
    trace.events.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "secret.sh"}})
    trace.events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "thread 1 (secret)"}})
    return trace


@pytest.fixture
def folder(tmp_path):
    """A run of two ranks, and a file of a third one that can't be read."""
    run = tmp_path / "secret-run"
    run.mkdir()
    for rank in range(2):
        (run / f"secret-host_{rank}.1700000000000.pt.trace.json").write_text(recording(rank).text())
    (run / "secret-host_2.1700000000000.pt.trace.json").write_text("secret")
    return run


def numbers(value):
    """The numbers of a report, in order."""
    if isinstance(value, dict):
        return [number for inner in value.values() for number in numbers(inner)]
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    return [] if isinstance(value, str) else [value]


def test_nothing_of_the_owner_is_left_in_the_report_of_a_run_and_every_number_is(kinetoscope, folder, tmp_path):
    hidden, shown = tmp_path / "a.html", tmp_path / "b.html"
    status, _, said = kinetoscope("report", str(folder), str(hidden), "--all", "--anonymous")
    assert status == 0
    assert "These stay: times, numbers, shapes" in said
    assert kinetoscope("report", str(folder), str(shown), "--all")[0] == 0
    texts = [json.dumps(content(path), ensure_ascii=False) for path in (hidden, shown)]
    assert len(re.findall("secret", texts[1], re.IGNORECASE)) > 100
    assert re.findall(".{0,80}secret.{0,80}", texts[0] + hidden.read_text(), re.IGNORECASE) == []
    assert [name for name in ("aten::mm", "2.13.0", "torch/nn/functional.py") if f'"{name}"' not in texts[0]] == []
    for ours, theirs in zip(content(hidden)["traces"], content(shown)["traces"], strict=True):
        assert ours["state"]["state"] == theirs["state"]["state"]
        for mine, other in zip(ours["answers"], theirs["answers"], strict=True):
            if mine["view"] != "environment":  # it lists the metadata
                assert sorted(map(str, numbers(mine))) == sorted(map(str, numbers(other))), mine["view"]


def test_the_same_name_has_the_same_pseudonym_and_what_is_public_stays():
    names = Pseudonyms()
    trace = anonymous_trace(recording(0).build(), names)
    host = set(trace.host_events["name"].cast(str))
    assert host == {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3", "aten::mm"} | {
        names.annotation("secret range"),
        names.operator("secret::op"),
    }
    assert set(trace.python_calls["name"].cast(str)) == {
        names.frame("/home/me/secret/job/secret.py(12): load_secret"),
        "nn.Module: Module_1",
        "torch/nn/functional.py(9): linear",
        names.frame("<built-in method read of secret_io.Secret object at 0x7f>"),
    }
    assert set(trace.host_events["call_stack"].drop_nulls().cast(str)) == {
        f"torch/nn/modules/linear.py(125): forward;{names.frame('/home/me/secret/secret.py(7): a_secret')}"
    }


def test_a_memory_snapshot_has_neither_files_nor_annotations_of_the_owner(kinetoscope, tmp_path):
    allocator = Allocator()
    allocator.allocate(
        1 << 20, frames_of("/home/me/secret/secret.py:3:a_secret", "/x/site-packages/torch/optim/adam.py:2:step")
    )
    path = tmp_path / "secret.pickle"
    path.write_bytes(pickle.dumps(allocator.snapshot()))
    trace = anonymous_trace(read(str(path)), Pseudonyms())
    assert trace.snapshot_frames.select("file", "function").cast(str).rows() == [
        ("file_1.py", "function_1"),
        ("torch/optim/adam.py", "step"),
    ]
    assert kinetoscope("report", str(path), str(tmp_path / "a.html"), "--anonymous")[0] == 0
    assert "secret" not in json.dumps(content(tmp_path / "a.html"))
