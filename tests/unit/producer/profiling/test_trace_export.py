"""A window is in the file that was asked for, whichever of torch's writers made it."""

import gzip
import json
from pathlib import Path

import pytest
import torch
from torch.profiler import profile

from kinetoscope import SaveError, trace_handler
from kinetoscope.output.commit import check_raw, commit_trace
from kinetoscope.profiling.trace_export import export_trace
from kinetoscope_tb.reader import read


@pytest.fixture
def profiler():
    with profile() as profiler:
        torch.ones(4).relu()
    return profiler


@pytest.fixture
def written_by_cuspy(monkeypatch, profiler):
    """Torch's writer as Cuspy is: it appends `.gz` to the name, and writes compact JSON."""
    own = profile.export_chrome_trace

    def export(self, path):
        own(self, path)
        text = json.dumps(json.loads(Path(path).read_text()), separators=(",", ":"))
        Path(path).unlink()
        Path(f"{path}.gz").write_bytes(gzip.compress(text.encode()))

    monkeypatch.setattr(profile, "export_chrome_trace", export)
    return profiler


def test_cuspy_s_file_gets_the_name_that_was_asked_for_and_is_whole(tmp_path, written_by_cuspy):
    raw = tmp_path / "raw.json"
    export_trace(written_by_cuspy, str(raw))
    check_raw(raw)
    path, damage = commit_trace(raw, tmp_path / "out" / "t.json.gz", {"run": "r"}, owner="queue")
    assert (str(damage), [file.name for file in tmp_path.glob("raw*")]) == ("", ["raw.json"])
    assert "aten::relu" in set(read(path).host_events["name"])


def test_a_handler_saves_what_cuspy_wrote(tmp_path, written_by_cuspy):
    handler = trace_handler(tmp_path, run="run")
    handler(written_by_cuspy)
    handler.close(60)
    (path,) = handler.saved_traces
    assert "aten::relu" in set(read(path).host_events["name"])


def test_a_deferred_export_is_waited_for(tmp_path, monkeypatch, profiler):
    own, waiting = profile.export_chrome_trace, []
    monkeypatch.setattr(profile, "export_chrome_trace", lambda self, path: waiting.append((self, path)))
    monkeypatch.setattr(profile, "wait_for_exports", lambda _: own(*waiting.pop()), raising=False)
    export_trace(profiler, str(tmp_path / "raw.json"))
    check_raw(tmp_path / "raw.json")


@pytest.mark.parametrize("attribute", ["_use_cuspy", "_use_cupti_monitor"])
def test_where_cuspy_could_not_start_the_host_s_part_is_saved(tmp_path, monkeypatch, profiler, attribute, log):
    monkeypatch.setattr(profiler, attribute, True, raising=False)
    monkeypatch.setattr(profile, "export_chrome_trace", lambda *_: None)
    export_trace(profiler, str(tmp_path / "raw.json"))
    check_raw(tmp_path / "raw.json")
    assert "aten::relu" in set(read(tmp_path / "raw.json").host_events["name"])
    (message,) = log()
    assert "(Cuspy) couldn't start, so the trace has no GPU work" in message


def test_a_damaged_compressed_file_is_no_trace(tmp_path):
    raw = tmp_path / "raw.json"
    raw.write_bytes(gzip.compress(b'{"traceEvents": [' + b'{"ph": "X"},' * 1000 + b"{}]}")[:-12])
    with pytest.raises(SaveError, match="compressed file is damaged"):
        commit_trace(raw, tmp_path / "t.json", {}, owner="queue")
    assert [file.name for file in tmp_path.iterdir()] == ["raw.json"]
