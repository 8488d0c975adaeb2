"""`kinetoscope tables` and `kinetoscope stacks`: files for other tools."""

import json

import polars as pl
import pytest

from contract.running import a_trace, put
from kinetoscope_tb.cli import main
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder


def run(*words):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    return ended.value.code


def test_all_tables_of_a_run_are_parquet_files_with_the_definitions_of_their_columns(tmp_path, capsys):
    put(tmp_path / "logs", "job/rank0.10.pt.trace.json", "job/rank1.10.pt.trace.json")
    assert not run("tables", tmp_path / "logs", tmp_path / "new" / "out")
    said = capsys.readouterr()
    written = {path.stem: path for path in (tmp_path / "new" / "out").iterdir()}
    assert f": {len(written)} tables, " in said.out
    assert {"operators", "kernels", "steps", "rank_steps"} <= written.keys()
    trace = read(str(tmp_path / "logs/job/rank0.10.pt.trace.json"))
    for view in ("operators", "kernels", "steps"):
        assert pl.read_parquet(written[view]).equals(VIEWS[view].frame(trace, {}))
        columns = json.loads(pl.read_parquet_metadata(written[view])["columns"])
        assert [column["name"] for column in columns] == VIEWS[view].table.schema().names()
    assert "views have nothing to show" in said.err


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    put(tmp_path / "logs", "job/rank0.10.pt.trace.json")
    (tmp_path / "file").write_text("")
    assert run("tables", tmp_path / "logs", tmp_path / "file" / "out") == 1
    assert "can't be made: " in capsys.readouterr().err


def test_the_ending_of_a_file_of_stacks_chooses_its_format(tmp_path, capsys):
    trace = tmp_path / "trace.json"
    trace.write_text(TraceBuilder().python("train.py(9): main", 0, 500_000).op("aten::mm", 10, 50).text())
    assert not run("stacks", trace, tmp_path / "out.folded")
    assert "main (train.py:9) " in (tmp_path / "out.folded").read_text()
    assert not run("stacks", trace, tmp_path / "out.speedscope.json", "--value", "host")
    assert json.loads((tmp_path / "out.speedscope.json").read_text())["profiles"][0]["unit"] == "nanoseconds"
    assert run("stacks", trace, tmp_path / "out.svg") == 1
    assert ".speedscope.json, .folded, .collapsed, .pb.gz" in capsys.readouterr().err
    assert run("stacks", trace, tmp_path / "out.folded", "--value", "device") == 1
    assert "No stack took time on the device." in capsys.readouterr().err


def test_without_stacks_the_option_that_records_them_is_named(tmp_path, capsys):
    (tmp_path / "trace.json").write_text(a_trace().text())
    assert run("stacks", tmp_path / "trace.json", tmp_path / "out.folded", "--of", "modules") == 1
    assert "with_stack=True" in capsys.readouterr().err
    assert not (tmp_path / "out.folded").exists()
