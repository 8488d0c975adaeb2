import importlib
import sys
import threading
from types import SimpleNamespace

import pytest

from kinetoscope.signals.call_stacks import Call, CallTimes, call_stack, frames_by_tid, message, thread_frame
from support.waiting import LIMIT_S


@pytest.fixture
def elsewhere():
    """A thread that waits in `wait_here`, and its identifiers."""
    begun, done = threading.Event(), threading.Event()

    def wait_here():
        begun.set()
        done.wait(LIMIT_S)

    thread = threading.Thread(target=wait_here, name="elsewhere")
    thread.start()
    begun.wait(LIMIT_S)
    yield thread
    done.set()
    thread.join()


def test_a_stack_has_file_line_and_function_of_each_call_the_innermost_first(elsewhere):
    calls = call_stack(thread_frame(elsewhere.ident))
    functions = [call.function.rpartition(".")[2] for call in calls]
    assert functions.index("wait_here") < functions.index("_bootstrap")
    here = calls[functions.index("wait_here")]
    assert here.file == __file__
    assert here.function.startswith(f"{__name__}.")


def test_deep_recursion_is_cut():
    def deep(levels):
        return call_stack(thread_frame(threading.get_ident())) if not levels else deep(levels - 1)

    assert len(deep(500)) == 64


def test_an_import_is_one_call_however_many_modules_it_imports(tmp_path, monkeypatch):
    levels = 30
    for level in range(levels):
        (tmp_path / f"imported_{level}.py").write_text(f"import imported_{level + 1}")
    (tmp_path / f"imported_{levels}.py").write_text(
        "import sys\nfrom kinetoscope.signals.call_stacks import call_stack\ncalls = call_stack(sys._getframe())"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("imported_0")
    functions = [call.function for call in sys.modules[f"imported_{levels}"].calls]
    here = functions.index(f"{__name__}.{test_an_import_is_one_call_however_many_modules_it_imports.__name__}")
    of_modules = [f"imported_{level}.<module>" for level in range(levels, -1, -1)]
    assert functions[: 2 * levels + 1 : 2] == of_modules
    assert set(functions[1 : 2 * levels : 2]) == {"importlib._bootstrap._find_and_load"}
    assert here <= 2 * levels + 3


def test_an_unknown_thread_has_no_stack():
    assert call_stack(thread_frame(None)) == call_stack(thread_frame(-1)) == []


def test_threads_are_those_of_python_without_the_one_that_looks(elsewhere):
    frames = frames_by_tid()
    assert frames[elsewhere.native_id][0] == "elsewhere"
    assert threading.get_native_id() not in frames


def test_a_call_lasts_as_long_as_all_calls_outside_of_it_do():
    now = [0.0]
    times = CallTimes(lambda: now[0])
    main, load, read = Call("train.py", 88, "main"), Call("torch.py", 5, "load"), Call("torch.py", 7, "read")
    times.update([load, main])
    now[0] = 10.0
    times.update([read, load, main])
    now[0] = 14.0
    assert times.lines() == [[*read, 4.0], [*load, 14.0], [*main, 14.0]]
    times.update([read, load, Call("train.py", 89, "main")])
    now[0] = 15.0
    assert [line[-1] for line in times.lines()] == [1.0, 1.0, 1.0]


def a_frame(function, values, module="torch.distributed.distributed_c10d"):
    code = SimpleNamespace(co_name=function)
    inner = SimpleNamespace(co_name="wait")
    outer = SimpleNamespace(f_code=code, f_globals={"__name__": module}, f_locals=values, f_back=None)
    return SimpleNamespace(f_code=inner, f_globals={}, f_locals={}, f_back=outer)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (a_frame("recv", {"src": 3}), {"operation": "recv", "peer": 3}),
        (a_frame("send", {"dst": None, "group": None, "group_dst": 2}), {"operation": "send", "peer": 2}),
        (a_frame("recv", {"src": None}), {"operation": "recv", "peer": None}),  # from any rank
        (a_frame("recv", {"src": 3}, "socket_library"), None),
        (a_frame("all_reduce", {}), None),
        (None, None),
    ],
)
def test_a_send_or_receive_has_its_peer(frame, expected):
    importlib.import_module("torch.distributed")  # which these calls are of
    assert message(frame) == expected
