"""Every field that torch 2.15 writes is read, or docs/which-traces-open.md says why it isn't."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from kinetoscope_tb.reader.scan.columns import ARGS, EVENT_KEYS, TIMES
from support.torch_2_15 import document

PAGE = Path(__file__).parents[3] / "docs" / "which-traces-open.md"
READ = {*EVENT_KEYS, *TIMES, "args", *(key for arg in ARGS for key in arg.keys)}
MARKS = {"layer"}  # of the program that made the fixtures: a mark may have any name
TOP = {"traceEvents", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds", "distributedInfo", "traceName"}
TOP |= {"trace_id", "host_name", "record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"}
TOP |= {"schemaVersion", "cudaGraphInlineAnnotated"}  # by measures/recording/torch_version.py, and the preview
OF_THE_PROGRAM = {"free text", "job"}  # add_metadata() in the fixtures
OF_DEVICES = {"cuda_runtime_version", "computeMajor", "computeMinor", "maxThreadsPerBlock", "numSms", "totalGlobalMem"}
OF_DEVICES |= {"maxThreadsPerMultiprocessor", "regsPerMultiprocessor", "warpSize"}
OF_DEVICES |= {"sharedMemPerBlock", "sharedMemPerMultiprocessor"}
NO_KEYS = {"start_ns", "end_ns", "all", "kernel", "gpu_memcpy", "gpu_memset", "graph_event_node", "cpu_instant_event"}
NO_KEYS |= {"gpu_user_annotation"}  # columns and categories in the same sources
LOGS = {"ERROR", "INFO", "STAGE", "WARNING"}  # of builds before 2.12
NO_TRACES = ("truth", "memory_timeline", "execution_trace", "annotations.json")


def left_out():
    """The keys in the page's table of fields that aren't read."""
    section = PAGE.read_text().partition("## Fields that aren't read")[2].partition("\n## ")[0]
    return {key for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for key in re.findall(r"`([^`]*)`", row)}


def events_of(path):
    content = document(path)
    return content["traceEvents"] if isinstance(content, dict) else content


@pytest.fixture(scope="module")
def traces(torch_2_15):
    listed = [path for folder in ("cpu", "cuspy", "python_export") for path in (torch_2_15 / folder).glob("*.json*")]
    return [path for path in listed if not any(word in path.name for word in NO_TRACES)]


def test_every_field_of_every_event_is_read_or_listed(traces):
    keys = set()
    for event in (event for path in traces for event in events_of(path)):
        keys |= event.keys()
        if event["ph"] != "C":  # a counter's arguments are its series
            keys |= (event.get("args") or {}).keys()
    assert len(traces) > 30
    assert keys - READ - left_out() - MARKS == set()


def test_every_top_level_key_is_known(traces):
    tops = set().union(*(content.keys() for path in traces if isinstance(content := document(path), dict)))
    assert tops - TOP - OF_THE_PROGRAM == set()


def test_nothing_is_listed_that_is_read():
    assert left_out() & READ == set()


def written_keys(profiler):
    """The keys of JSON objects in the sources of Cuspy's writer and of the exporter in Python."""
    cuspy, exporter = (profiler / name for name in ("_cuspy/trace.py", "_chrome_trace_export.py"))
    chrome, found, _ = cuspy.read_text().partition("cuspy_pftrace.cpp")  # what follows writes .pftrace
    assert found
    return set(re.findall(r'\\?"([A-Za-z][\w .%]*)\\?":|args\["([^"\n]+)"\]', chrome + exporter.read_text()))


@pytest.mark.skipif(find_spec("torch.profiler._cuspy") is None, reason="needs torch 2.15 or later")
def test_every_field_that_the_installed_writer_knows_is_read_or_listed():
    profiler = Path(find_spec("torch.profiler").submodule_search_locations[0])
    keys = {name for pair in written_keys(profiler) for name in pair if name}
    assert keys - READ - left_out() - TOP - OF_DEVICES - NO_KEYS == set()


def test_a_new_field_of_the_writer_would_be_missed(tmp_path):
    (tmp_path / "_cuspy").mkdir()
    (tmp_path / "_cuspy" / "trace.py").write_text('row = {"ph": "X"}\nargs["brand new"] = 1\n# cuspy_pftrace.cpp')
    (tmp_path / "_chrome_trace_export.py").write_text('"""{"also new": 2}"""')
    keys = {name for pair in written_keys(tmp_path) for name in pair if name}
    assert keys - READ - left_out() - TOP - OF_DEVICES - NO_KEYS == {"brand new", "also new"}


@pytest.mark.filterwarnings("ignore")  # of options that are deprecated, and of a build for CUDA without a device
def test_every_field_that_the_installed_torch_records_is_read_or_listed(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    options = dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"), True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as profiler:
        with torch.profiler.record_function("range", "an argument"):
            model(torch.ones(2, 8)).sum().backward()
        profiler.step()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    recorded = document(tmp_path / "trace.json")
    rows = recorded.pop("traceEvents")
    keys = {key for row in rows for key in row} | {key for row in rows for key in row.get("args") or {}}
    assert len(rows) > 50
    assert keys - READ - left_out() == set()
    assert recorded.keys() - TOP - LOGS == set()
