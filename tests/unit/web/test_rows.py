"""What the server says of a row of a view besides its calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.test import Client

from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.web import rows
from kinetoscope_tb.web.app import Applications
from support.build import TraceBuilder
from support.real_traces import FOLDER, MISSING
from support.waiting import LIMIT_S, wait_for

if TYPE_CHECKING:
    from pathlib import Path

real = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)


class Server:
    """Answers about the first recording under a path."""

    def __init__(self, path: Path, patience_s: float = LIMIT_S) -> None:
        self.engine = Engine([Logdir(str(path))], patience_s=patience_s)
        ((self.run, workers), *_) = wait_for(self.engine.listing).runs.items()
        self.worker = min(workers)
        self.place = {"run": self.run, "worker": self.worker, "span": next(iter(workers[self.worker]))}
        self.apps = Applications(self.engine)

    def ask(self, route: str, **query: Any) -> Any:
        return Client(self.apps[route]).get("/", query_string={**self.place, **query}).json

    def ready(self, route: str, **query: Any) -> Any:
        return wait_for(lambda: self.ask(route, **query), is_right=lambda answer: answer["state"] != "loading")

    def about(self, part: str, view: str, row: int = 0, **key: Any) -> Any:
        if not key:
            data = self.ready("/view", view=view)["data"]
            key = {name: data[name][row] for name in VIEWS[view].table.key}
        stamp = self.ready("/timeline")["stamp"]
        return self.ready(f"/timeline/row/{part}", stamp=stamp, find=json.dumps({"view": view, **key}))


def write_ranks(folder: Path, *durations: int) -> Path:
    for rank, dur in enumerate(durations):
        builder = TraceBuilder(distributedInfo={"rank": rank, "world_size": len(durations)})
        builder.step(1, 0, 900).launch(0, 5, 1).kernel("k", 10, dur, 1, device=rank)
        (folder / f"rank{rank}.5.pt.trace.json").write_text(builder.text(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("patience_s", [0, LIMIT_S])
def test_the_same_kernel_on_every_rank(tmp_path: Path, patience_s):
    answer = Server(write_ranks(tmp_path, 100, 200, 100), patience_s).about("ranks", "kernels", name="k")
    assert answer["text"].startswith("Rank 1 takes longest: 200 ns, 2 × the median of 3 ranks.")
    assert [(one["worker"], one["total_ns"]) for one in answer["ranks"]] == [
        ("rank1", 200),
        ("rank0", 100),
        ("rank2", 100),
    ]


def test_a_key_with_a_device_means_the_device_of_each_rank(tmp_path: Path):
    answer = Server(write_ranks(tmp_path, 100, 200)).about("ranks", "idle", scope="device", device=0)
    assert answer == {"state": "ready", "text": "", "ranks": []}  # its events take a computation of all gaps
    gpus = Server(tmp_path).about("ranks", "gpus", device=0)
    assert [one["find"]["device"] for one in gpus["ranks"]] == [1, 0]


def test_files_that_are_too_large_to_read_for_this_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rows, "MOST_BYTES_TO_READ", 0)
    answer = Server(write_ranks(tmp_path, 100, 200)).about("ranks", "kernels", name="k")
    assert answer["text"] == "Only on rank 0. 1 more rank is not read: its trace is large."


def test_a_rank_that_can_not_be_read_is_left_out(tmp_path: Path):
    write_ranks(tmp_path, 100, 200, 300)
    (tmp_path / "rank2.5.pt.trace.json").write_text("this is no JSON", encoding="utf-8")
    answer = Server(tmp_path).about("ranks", "kernels", name="k")
    assert [one["worker"] for one in answer["ranks"]] == ["rank1", "rank0"]
    assert "not read" not in answer["text"]


def test_a_run_of_one_worker_has_no_other_ranks(tmp_path: Path):
    assert Server(write_ranks(tmp_path, 100)).about("ranks", "kernels", name="k")["ranks"] == []


@real
def test_eight_real_ranks():
    server = Server(FOLDER / "runs" / "dlrm_8gpu_nccl")
    answer = server.about("ranks", "operators", name="aten::copy_")
    assert answer["text"] == "Rank 1 takes longest: 7.94 ms, 2.1 × the median of 8 ranks."
    assert (len(answer["ranks"]), answer["ranks"][-1]["text"]) == (8, "rank 7")


@real
@pytest.mark.parametrize(
    ("view", "rule"), [("idle_culprits", "data_loading"), ("gaps", "data_loading"), ("kernels", "unfused_attention")]
)
def test_the_first_row_of_a_real_trace_leads_to_its_advice(view, rule):
    advice = Server(FOLDER / "claims" / "tracelens_h100_owlv2.json.gz").about("advice", view)["advice"]
    assert rule in [one["rule"] for one in advice]
