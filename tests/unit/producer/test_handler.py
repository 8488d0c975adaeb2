"""What `trace_handler` saves of a profiler that the program itself keeps."""

import gzip
import json

import pytest
import torch
from torch.profiler import profile

from kinetoscope import UsageError, trace_handler


def work():
    torch.ones(4, 4).relu().sum()


def test_a_handler_saves_the_program_s_own_profiler_s_windows(tmp_path):
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    handler = trace_handler(tmp_path, run="run")
    with profile(schedule=schedule, on_trace_ready=handler, with_flops=True) as profiler:
        for _ in range(5):
            work()
            profiler.step()
    handler.close()
    assert handler.saved_traces == (tmp_path / "run" / "rank0.4.pt.trace.json.gz",)
    metadata = json.loads(gzip.decompress(handler.saved_traces[0].read_bytes()))["kinetoscope"]
    assert (metadata["global_rank"], metadata["step_last"], metadata["run"]) == (0, 3, "run")
    assert metadata["options"]["with_flops"]
    assert not metadata["options"]["record_shapes"]
    assert metadata["options"]["activities"] == ["CPU"]


def test_a_handler_uses_the_given_worker_name(tmp_path, log):
    handler = trace_handler(tmp_path, run="run", worker="{trainer}")
    with profile(on_trace_ready=handler):
        work()
    handler.close()
    assert [path.name for path in handler.saved_traces] == ["{trainer}.0.pt.trace.json.gz"]
    with pytest.raises(UsageError, match="worker"):
        trace_handler(tmp_path, worker="a/b")


def test_a_handler_never_raises_into_torch(tmp_path, log):
    (tmp_path / "file").touch()
    handler = trace_handler(tmp_path / "file", run="run")
    with profile(on_trace_ready=handler):
        work()
    handler.close()
    assert [text.partition(" ")[0] for text in log()] == ["The", "rank0.0.pt.trace.json.gz"]
