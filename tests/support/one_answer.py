"""The headline of each screen about a recording or a run, in one process and without a server."""

from __future__ import annotations

import html
import io
import json
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from werkzeug.test import Client

import kinetoscope_tb
from kinetoscope_tb.answer.first_screen import blocks_of, text_lines
from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.cli import main
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.answers import Missing, cached_frames, compute
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.errors import MissingData
from kinetoscope_tb.measures.recording.usual_step import usual_step
from kinetoscope_tb.names import text as text_of
from kinetoscope_tb.names.text import visible
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from kinetoscope_tb.web.app import Applications
from support.identities import QUANTITIES, Answers, differences
from support.waiting import LIMIT_S

LONG_NS = 100_000  # so that rounding to a nanosecond is less than a thousandth


def command(*arguments: str) -> str:
    """What a command prints."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()), suppress(SystemExit):
        main([*arguments])
    return output.getvalue()


def _words(text: str) -> str:
    return " ".join(text.split())


def check_words(trace: Trace) -> None:
    """See that the text of one recording begins with its answer's verdict, which is the first row of its view."""
    answer = recording_answer(trace, EVERY_VIEW, cached_frames)
    title = answer.verdict.title
    assert _words("\n".join(text_lines(blocks_of(answer, "--worker")))).startswith(_words(visible(title))), title
    assert title in (_first_title(trace, "advice"), _first_title(trace, "snapshot_summary")), title


def check_length_without_profiler(trace: Trace) -> None:
    """See that all screens give one length of a step without the profiler: claims, MFU, sliders, paths, Trace health."""
    answers, answer = Answers(trace), recording_answer(trace, EVERY_VIEW, cached_frames)
    assert not [
        found for quantity in QUANTITIES if "length of" in quantity.name and (found := differences(quantity, answers))
    ]
    whole_ns = answer.usual_step_ns
    assert (whole_ns is None) == (usual_step(trace) is None)
    for claim in answer.claims if whole_ns else ():
        assert claim.saving_ns is None or claim.saving_frac == claim.saving_ns / whole_ns
    for view in ("critical_path", "critical_path_names") if whole_ns else ():
        for row in answers.table(view).filter(pl.col("saved_ns") > LONG_NS).rows(named=True):
            assert row["saved_ns"] / row["saved_frac"] == pytest.approx(whole_ns, rel=1e-3), (view, row)
    words = f"{text_of.time(whole_ns or 0)} without the profiler"
    assert (words in "\n".join(text_lines(blocks_of(answer, "--worker")))) == (whole_ns is not None)
    health = [row.consequence for row in diagnose(trace) if row.rule == "recording_slows_steps"]
    assert [f"one without the profiler {text_of.time(whole_ns or 0)} (" in row for row in health] == [True] * len(
        health
    )
    assert len(health) == (whole_ns is not None)


def _first_title(trace: Trace, view: str) -> str | None:
    rows = compute(VIEWS[view], trace, {})
    return None if isinstance(rows, Missing) or rows.is_empty() else rows["title"][0]


def over_http(path: Path, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The answers of the HTTP route: of the recording, and of its run."""
    folder = path if path.is_dir() else path.parent
    engine = Engine([Logdir(str(folder))], patience_s=LIMIT_S)
    engine.listing()
    client = Client(Applications(engine)["/answer"])
    for of in ("recording", "run"):
        yield client.get("/answer", query_string={**names, "of": of}).json


def check_screens(path: Path) -> None:
    """See that each screen says first what the answer does, and that programs get the same values of it."""
    profile = kinetoscope_tb.open(str(path))
    answer = profile.answer
    values = json.loads(json.dumps(answer.values()))
    printed = json.loads(command("summary", str(path), "--format", "json"))
    for other in (values, printed):  # their commands have the path that each was given
        del other["next"]
    assert printed == values
    title = _words(visible(answer.verdict.title))
    screens = profile._repr_mimebundle_()
    for text in (command("summary", str(path)), profile.summary(), screens["text/plain"]):
        assert _words(text.split("\n\n", 1)[1])[: len(title)] == title, text
    assert _first_of_page(profile, answer.verdict.about, is_run=answer.ranks > 0) == answer.verdict.title
    report = _report(path)
    assert f'<meta name="description" content="{html.escape(visible(answer.verdict.title))}">' in report
    names = {"run": answer.run, "worker": answer.worker, "span": answer.span}
    of_recording, of_run = over_http(path, names)
    if "code" not in of_recording:  # a file that lies in a folder with others has another name there
        theirs = of_run if answer.ranks else of_recording
        assert theirs["verdict"]["title"] == answer.verdict.title


def _report(path: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        command("report", str(path), str(file), "--rows", "1")
        return file.read_text("utf-8")


def _first_of_page(profile: kinetoscope_tb.api.Profile, about: str, *, is_run: bool) -> str | None:
    """What the page's verdict says: of a run the first row of `run_advice` above that of `advice`."""
    view = "run_advice" if is_run and about == "run" else "advice"
    for name in (view, "snapshot_summary"):
        with suppress(MissingData):
            for title in profile.view(name)["title"]:
                return str(title)
    return None
