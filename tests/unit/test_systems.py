"""What some promised system or Python lacks in the standard library isn't reached there; the syntax is Python 3.10's."""

import ast
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="its stubs say what each system lacks")

from support.promises import PYTHONS, lacking, modules_lacking

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "producer", ROOT / "tb_plugin")
PROC, HASATTR, PLATFORM = "behind a file of /proc", "behind hasattr", "behind sys.platform"
ABSENT = "it is expected to be missing"
GUARDED = {  # module: function, and why it isn't reached where a name is missing
    "producer/kinetoscope/child_process.py: broken_pipes_as_errors": HASATTR,
    "producer/kinetoscope/child_process.py: lower_priority": ABSENT,
    "producer/kinetoscope/composer/json_traces/node_file.py: ": PLATFORM,
    "producer/kinetoscope/composer/json_traces/node_file.py: _folder_lock": PLATFORM,
    "producer/kinetoscope/job/job_store.py: process_start_ns": PROC,
    "producer/kinetoscope/output/process_watch.py: ": PLATFORM,
    "producer/kinetoscope/output/process_watch.py: __init__": ABSENT,
    "producer/kinetoscope/output/process_watch.py: _status_after_reaping": PLATFORM,
    "producer/kinetoscope/output/ring.py: __init__": ABSENT,
    "producer/kinetoscope/output/ring.py: content_of": "only with a descriptor of `__init__`",
    "producer/kinetoscope/output/scratch.py: check_private": HASATTR,
    "producer/kinetoscope/output/scratch.py: scratch_root": HASATTR,
    "producer/kinetoscope/output/spool.py: ": PLATFORM,
    "producer/kinetoscope/output/spool.py: lock": PLATFORM,
    "producer/kinetoscope/output/window_records.py: is_unchanged": HASATTR,
    "producer/kinetoscope/output/writer_client.py: _start": "behind HAS_PIPES_WITHOUT_WAITING",
    "producer/kinetoscope/output/writer_client.py: register": HASATTR,
    "producer/kinetoscope/path_below.py: names": "only where folders are opened by openat",
    "producer/kinetoscope/process_id.py: ": HASATTR,
    "producer/kinetoscope/profiling/teardown.py: skip_destructors_when_forked": HASATTR,
    "producer/kinetoscope/sampling/procfs.py: process": PROC,
    "producer/kinetoscope/selftest/abilities.py: ": PLATFORM,
    "producer/kinetoscope/selftest/abilities.py: _lock": PLATFORM,
    "producer/kinetoscope/selftest/abilities.py: _memory": HASATTR,
    "producer/kinetoscope/selftest/abilities.py: _pidfd": HASATTR,
    "producer/kinetoscope/selftest/abilities.py: _temporary_file": HASATTR,
    "producer/kinetoscope/selftest/deaths.py: _hang": "the command refuses to run without os.killpg",
    "producer/kinetoscope/selftest/deaths.py: _kill_group": "the command refuses to run without os.killpg",
    "producer/kinetoscope/selftest/deaths.py: _kill_writer": "the command refuses to run without os.killpg",
    "producer/kinetoscope/selftest/training.py: ": PLATFORM,
    "producer/kinetoscope/selftest/training.py: _pause": PLATFORM,
    "producer/kinetoscope/signals/signal_guard.py: _after": "after `_before`",
    "producer/kinetoscope/signals/signal_guard.py: _before": "os.register_at_fork calls it",
    "producer/kinetoscope/signals/signal_guard.py: register": HASATTR,
    "producer/kinetoscope/signals/stuck_signals.py: begin": "only on POSIX",
    "producer/kinetoscope/signals/stuck_signals.py: register": "after `begin`",
    "tb_plugin/kinetoscope_tb/arrays/pages.py: own_pages": HASATTR,
    "tb_plugin/kinetoscope_tb/cli/gate_machine.py: __init__": HASATTR,
    "tb_plugin/kinetoscope_tb/cli/gate_machine.py: _busy_s": PROC,
    "tb_plugin/kinetoscope_tb/cli/gate_machine.py: _end": HASATTR,
    "tb_plugin/kinetoscope_tb/engine/cache/private_folders.py: is_mine": HASATTR,
    "tb_plugin/kinetoscope_tb/engine/processes.py: work": HASATTR,
    "tb_plugin/kinetoscope_tb/engine/trace_cache.py: _quarter_of_memory": ABSENT,
    "tb_plugin/kinetoscope_tb/engine/workers.py: _work": "only on Linux",
}


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"), feature_version=PYTHONS[0])


def sources():
    return [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]


def uses(path):
    """(function, name): what the functions of a file, or its top level, use of what isn't everywhere."""
    modules = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import)
        for alias in node.names
    }

    def visit(node, function):
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            match child:
                case ast.Import(names=names):
                    yield from ((inside, alias.name) for alias in names if alias.name in modules_lacking())
                case ast.ImportFrom(module=str(module), level=0) if module in modules_lacking():
                    yield inside, module
                case ast.ImportFrom(module=str(module), level=0, names=names):
                    yield from ((inside, f"{module}.{alias.name}") for alias in names if alias.name in lacking(module))
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in modules:
                    if attribute in lacking(modules[name]):
                        yield inside, f"{modules[name]}.{attribute}"
            yield from visit(child, inside)

    yield from visit(tree(path), "")


def test_what_is_not_everywhere_is_guarded():
    found = {}
    for path in sources():
        for function, name in uses(path):
            found.setdefault(f"{path.relative_to(ROOT).as_posix()}: {function}", set()).add(name)
    assert {function: sorted(names) for function, names in found.items() if function not in GUARDED} == {}
    assert GUARDED.keys() - found.keys() == set()
