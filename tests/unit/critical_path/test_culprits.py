"""Who is on the critical path: Python functions and annotations in place of the step's own range."""

import json

import pytest

from kinetoscope_tb.timeline.core.build import timeline as timeline_of
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.overview.critical_path_culprits import MOST_STEPS, critical_path_culprits
from kinetoscope_tb.views.overview.critical_path_summary import critical_path_summary
from support.build import TraceBuilder, same


@pytest.fixture(scope="module")
def trace():
    """Two steps that prepare their input in Python, and then launch a kernel."""
    built = TraceBuilder()
    for step, normalize_ns in ((1, 300), (2, 500)):
        at = step * 2000
        built.step(step, at, 1000).python("work/train.py(3): main", at, 1000)
        built.python("work/images.py(40): normalize", at, normalize_ns)
        built.python("numpy/core.py(7): astype", at + 20, 100)
        built.annotation("collate", at + 600, 100)
        built.op("aten::mm", at + 750, 40).launch(at + 760, 10, step).kernel("gemm", at + 775, 400, step)
    return built.build()


def test_host_code_has_the_name_of_what_ran_and_its_line(trace):
    rows = critical_path_culprits(trace)
    same(
        rows.filter(step="1").drop("step", "mean_ns", "path_frac"),
        """
        cause            name       path_ns  culprits  source
        host_python      normalize  200      1         work/images.py(40): normalize
        host_python      main       350      1         work/train.py(3): main
        host_python      astype     100      1         numpy/core.py(7): astype
        kernel           gemm       400      1         -
        host_annotation  collate    100      1         work/train.py(3): main
        launch           -          15       2         -
        host_operator    -          10       1         -
        """,
    )
    assert rows["step"].unique(maintain_order=True).to_list() == ["all", "1", "2"]


def test_a_culprit_that_takes_much_is_the_sentence(trace):
    (row,) = critical_path_summary(trace).rows(named=True)
    assert (row["rule"], row["title"]) == ("host_python", "25.5 % of the critical path is `normalize`.")
    assert row["evidence"].startswith(
        "It takes 300 ns per step (Python on the host at `normalize (work/images.py:40)`). "
        "All Python on the host together: 650 ns per step, 55.3 % of the path. "
    )
    assert "ProfilerStep" not in row["evidence"]


@pytest.mark.parametrize(
    ("step", "cause", "name", "source", "found"),
    [
        ("1", "host_python", "normalize", "work/images.py(40): normalize", ["work/images.py(40): normalize"]),
        ("all", "host_python", "normalize", "work/images.py(40): normalize", ["work/images.py(40): normalize"] * 2),
        ("2", "host_annotation", "collate", "work/train.py(3): main", ["collate"]),
        ("2", "kernel", "gemm", None, ["gemm"]),
        ("1", "launch", None, None, ["cudaLaunchKernel", "gemm"]),
        ("1", "kernel", "normalize", None, []),
        ("9", "kernel", "gemm", None, []),
    ],
)
def test_rows_lead_to_what_runs_in_their_pieces(trace, step, cause, name, source, found):
    made = timeline_of(trace)
    row = {"view": "critical_path_culprits", "step": step, "cause": cause, "name": name, "source": source}
    numbers = search(trace, made, parse_find(json.dumps(row), VIEWS), VIEWS).numbers
    assert sorted(made.labels.texts[label] for label in made.label[numbers]) == found


def test_of_many_steps_the_longest_are_drawn():
    built = TraceBuilder()
    for step in range(MOST_STEPS + 4):
        built.step(step, step * 1000, 900).op("aten::mm", step * 1000, 100 + step).kernel(
            "k", step * 1000 + 200, 700 + step
        )
    steps = critical_path_culprits(built.build())["step"].unique(maintain_order=True).to_list()
    assert steps[0] == "all"
    assert len(steps) == MOST_STEPS + 1
    assert steps[1:] == sorted(steps[1:], key=int)


def test_between_its_ranges_autograd_s_thread_is_in_the_annotation_that_the_main_thread_waits_in():
    built = TraceBuilder()
    for step, at in ((1, 0), (2, 1000)):
        built.step(step, at, 1000).op("forward", at, 200)
        built.annotation("backward", at + 200, 500).annotation("optimizer", at + 700, 300)
        for start in (300, 500):
            built.op("autograd::engine::evaluate_function: MmBackward0", at + start, 100, thread=2)
    trace = built.build()
    segments = VIEWS["critical_path_segments"].run(trace).filter(start_ns=1400)
    assert segments.select("part", "name", "dur_ns").rows() == [("host_annotation", "backward", 100)]
    whole = dict(VIEWS["critical_path_names"].run(trace).select("name", "whole_ns").rows())
    main_thread, of_autograd, after_its_last_range = 500, 2 * 100 + 100, 100  # the first ends without a wait for it
    assert whole["backward"] == main_thread + of_autograd + after_its_last_range
    assert whole["optimizer"] == 2 * 300
