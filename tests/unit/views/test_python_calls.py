"""Python calls: one row per path of callers, and which work belongs to which."""

import pytest

from kinetoscope_tb.views.host import python_calls as module
from kinetoscope_tb.views.host.python_calls import VIEW, python_calls
from support.build import TraceBuilder, same


def program():
    """main() calls step() twice; each step runs an operator in an operator, which launches a kernel."""
    builder = TraceBuilder().python("train.py(1): main", at=0, dur=300)
    for call, at in enumerate((10, 110)):
        builder.python("train.py(5): step", at=at, dur=80)
        builder.op("aten::linear", at=at + 10, dur=50).op("aten::addmm", at=at + 20, dur=30)
        builder.launch(at=at + 25, dur=5, correlation=call + 1).kernel(
            "gemm", at=at + 40, dur=100, correlation=call + 1
        )
    return builder


def test_calls_along_one_path_are_one_row_and_operators_stand_where_python_called_them():
    same(
        python_calls(program().build()),
        """
        function      kind      calls  host_self_ns  host_total_ns  device_self_ns  device_total_ns  file      line  parent_row
        thread 1      thread    -      0             300            0               200              -         -     -
        main          function  1      140           300            0               200              train.py  1     0
        step          function  2      60            160            0               200              train.py  5     1
        aten::linear  operator  2      100           100            200             200              -         -     2
        """,
    )


def test_the_choice_of_operators_moves_their_time_to_who_called_them():
    every = python_calls(program().build(), operators="all")
    assert every.select("function", "host_self_ns").rows()[3:] == [("aten::linear", 40), ("aten::addmm", 60)]
    none = python_calls(program().build(), operators="none")
    assert none.select("function", "host_self_ns", "device_self_ns").rows() == [
        ("thread 1", 0, 0), ("main", 140, 0), ("step", 160, 200),
    ]  # fmt: skip


def test_an_operator_that_calls_python_has_its_calls_in_it():
    trace = (
        TraceBuilder()
        .python("f.py(1): f", at=0, dur=100)
        .op("MyFunction", at=10, dur=80)
        .python("f.py(9): forward", at=20, dur=60)
        .op("aten::mul", at=30, dur=20)
        .build()
    )
    assert python_calls(trace).select("function", "host_self_ns", "parent_row").rows() == [
        ("thread 1", 0, None), ("f", 20, 0), ("MyFunction", 20, 1), ("forward", 40, 2), ("aten::mul", 20, 3),
    ]  # fmt: skip


def test_recursion_is_a_row_per_level():
    trace = TraceBuilder().python("f.py(1): f", at=0, dur=30).python("f.py(1): f", at=10, dur=10).build()
    assert python_calls(trace).select("function", "calls", "host_self_ns").rows() == [
        ("thread 1", None, 0), ("f", 1, 20), ("f", 1, 10),
    ]  # fmt: skip


def test_each_thread_that_ran_python_is_a_root_and_one_can_be_chosen():
    builder = program().python("loader.py(3): fetch", at=0, dur=1000, thread=2).op("aten::cat", at=0, dur=9, thread=3)
    trace = builder.launch(at=5, dur=1, correlation=9, thread=3).kernel("cat", at=20, dur=7, correlation=9).build()
    everything = python_calls(trace)
    assert everything.filter(kind="thread").select("function", "host_total_ns").rows() == [
        ("thread 1", 300),
        ("thread 2", 1000),
    ]
    assert everything.rows()[-1][:2] == ("[elsewhere]", "rest")
    assert everything["device_self_ns"].sum() == 207
    chosen = python_calls(trace, thread="2")
    assert chosen.select("function", "host_total_ns", "device_self_ns").rows() == [
        ("thread 2", 1000, 0), ("fetch", 1000, 0), ("[elsewhere]", None, 207),
    ]  # fmt: skip
    assert python_calls(trace, thread="7")["function"].to_list() == ["[elsewhere]"]


def test_the_main_thread_comes_first_and_threads_that_only_wait_come_last():
    acquire = "<built-in method acquire of _thread.lock object at 0x7f>"
    builder = program().python("queue.py(2): _run", at=0, dur=1000, thread=2).python(acquire, at=1, dur=500, thread=2)
    builder.python("threading.py(2): wait", at=501, dur=499, thread=2)  # in a call from before the recording
    builder.python("log.py(2): write", at=0, dur=900, thread=3).python(acquire, at=1, dur=850, thread=3)
    threads = python_calls(builder.build()).filter(kind="thread")
    assert threads.select("function", "is_waiting").rows() == [
        ("thread 1", False), ("thread 3", False), ("thread 2", True),
    ]  # fmt: skip


def test_a_thread_of_which_only_the_beginning_was_recorded_is_taken_to_wait():
    builder = program()
    for thread in (2, 3):
        builder.python("threading.py(995): _bootstrap", at=0, dur=1000, thread=thread)
        builder.python("threading.py(975): run", at=1, dur=990, thread=thread)
    builder.python("log.py(2): write", at=10, dur=900, thread=3)
    threads = python_calls(builder.build()).filter(kind="thread")
    assert threads.select("function", "is_waiting").rows() == [
        ("thread 1", False), ("thread 3", False), ("thread 2", True),
    ]  # fmt: skip


def test_functions_of_python_torch_and_other_packages_are_library():
    builder = TraceBuilder().python("train.py(1): main", at=0, dur=90)
    builder.python("torch/optim/adam.py(3): step", at=10, dur=50).python("<built-in function len>", at=20, dur=5)
    assert python_calls(builder.build())["kind"].to_list() == ["thread", "function", "library", "library"]


@pytest.mark.parametrize(
    ("frame", "function", "file", "line"),
    [
        ("a/b (c).py(12): <listcomp>", "<listcomp>", "a/b (c).py", 12),
        ("<built-in method add of Tensor object at 0x7f12>", "<built-in method add of Tensor object>", None, None),
        ("nn.Module: Linear_0", "nn.Module: Linear_0", None, None),
        ("x.py(1): y(2): z", "z", "x.py(1): y", 2),
        ("odd(99999999999): f", "odd(99999999999): f", None, None),
        ("two\nlines.py(3): f", "f", "two\nlines.py", 3),
        ("", "", None, None),
    ],
)
def test_a_frame_is_read_as_function_file_and_line(frame, function, file, line):
    trace = TraceBuilder().python(frame, at=0, dur=1).build()
    assert python_calls(trace).select("function", "file", "line").row(1) == (function, file, line)


def test_methods_of_different_objects_are_one_function():
    builder = TraceBuilder()
    for at in range(3):
        builder.python(f"<built-in method add of Tensor object at 0x7f{at}>", at=10 * at, dur=5)
    assert python_calls(builder.build())["calls"].to_list() == [None, 3]


def test_what_is_small_is_put_together_below_its_caller(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    builder = TraceBuilder().python("m.py(1): main", at=0, dur=100).python("m.py(2): large", at=0, dur=80)
    for i in range(4):
        builder.python(f"m.py({10 + i}): small", at=80 + 5 * i, dur=4).python("m.py(9): smallest", at=80 + 5 * i, dur=2)
    assert python_calls(builder.build()).select("function", "calls", "host_self_ns", "host_total_ns").rows() == [
        ("thread 1", None, 0, 100),
        ("main", 1, 4, 100),
        ("large", 1, 80, 80),
        ("[smaller calls]", 4, 16, 16),
    ]


def test_what_takes_the_device_long_has_its_own_row_though_the_host_is_quick(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    builder = program()
    for i in range(5):
        builder.python(f"m.py({i}): slow", at=400 + 100 * i, dur=90)
    assert "aten::linear" not in python_calls(builder.build())["function"]  # shares: 1.0, then slow, then device
    monkeypatch.setattr(module, "MOST_ROWS", 4)
    assert "aten::linear" in python_calls(builder.build())["function"]


def test_a_path_has_the_same_number_in_every_trace():
    one, other = python_calls(program().build()), python_calls(program().python("a.py(1): a", at=900, dur=1).build())
    assert set(one["path"]) < set(other["path"])


def test_without_stacks_it_says_how_to_record_them():
    assert VIEW.is_missing(TraceBuilder().op("aten::mm", at=0, dur=1).build())
    assert "with_stack=True" in VIEW.hint
