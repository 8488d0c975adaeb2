import json
import signal
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope import Tracer, UsageError
from kinetoscope.scheduling.request import (
    MOST_BYTES,
    WORK,
    Request,
    parse_request,
    request_from_json,
    take_request,
    write_request,
)
from kinetoscope.signals.signal_guard import ending_signals, request_signal

REQUESTS = st.builds(
    Request,
    steps=st.integers(1, 10_000),
    warmup=st.integers(0, 1_000),
    at=st.none() | st.integers(0, 10**15),
    roundup=st.integers(1, 1_000_000),
    ranks=st.none() | st.lists(st.integers(0, 1000), min_size=1).map(tuple),
    options=st.dictionaries(st.sampled_from(["with_stack", "record_shapes"]), st.booleans()),
    reason=st.text(min_size=1, max_size=100),
)


@given(REQUESTS)
def test_a_request_survives_its_file(request):
    assert parse_request(json.dumps(request.to_json()).encode()) == request


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_request_or_refused(data):
    try:
        request = parse_request(data)
    except UsageError:
        return
    assert request.steps >= 1


def test_an_empty_file_asks_for_three_steps():
    request = parse_request(b" \n")
    assert (request.steps, request.warmup, request.at, request.ranks) == (3, 1, None, None)


@pytest.mark.parametrize(
    "value",
    [
        {"steps": 0},
        {"steps": True},
        {"steps": 10_001},
        {"steps": "3"},
        {"warmup": -1},
        {"at": -1},
        {"roundup": 0},
        {"ranks": []},
        {"ranks": [-1]},
        {"ranks": "0"},
        {"options": {"with_stack": 1}},
        {"options": {"activities": True}},
        {"options": []},
        {"reason": ""},
        {"id": 7},
        {"surprise": 1},
        [3],
        None,
    ],
)
def test_what_can_not_be_followed_is_refused_with_a_reason(value):
    with pytest.raises(UsageError):
        request_from_json(value)


def test_one_of_many_readers_gets_a_request(tmp_path):
    write_request(tmp_path, Request(steps=7))
    requests, start = [], threading.Barrier(8)

    def look():
        start.wait()
        requests.append(take_request(tmp_path))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [request.steps for request in requests if request] == [7]
    assert list((tmp_path / WORK).iterdir()) == []


def test_an_invalid_request_is_removed_too(tmp_path):
    for text in ("{", "x" * (MOST_BYTES + 1)):
        write_request(tmp_path, Request()).write_text(text)
        with pytest.raises(UsageError):
            take_request(tmp_path)
        assert take_request(tmp_path) is None


@pytest.mark.parametrize("name", ["SIGUSR2", int(signal.SIGUSR2), signal.SIGUSR2])
def test_a_signal_is_named_or_numbered(name):
    assert request_signal(name) == signal.SIGUSR2


@pytest.mark.parametrize("name", ["USR2", "SIG_IGN", "SIGNONE", 0, 10**6, True, 2.0, "SIGTERM", signal.SIGKILL, 11])
def test_a_signal_that_can_not_ask_is_refused(name, tmp_path):
    with pytest.raises(UsageError, match="SIGUSR2"):
        Tracer(tmp_path, signal=name)


def test_a_signal_to_a_tracer_that_takes_no_requests_is_refused(tmp_path):
    with pytest.raises(UsageError, match="requests=False"):
        Tracer(tmp_path, signal="SIGUSR2", requests=False)


def test_under_slurm_sighup_is_left_to_the_program():
    assert ending_signals({}) == ("SIGTERM", "SIGHUP", "SIGINT")
    assert ending_signals({"SLURM_JOB_ID": "7"}) == ("SIGTERM", "SIGINT")


def test_no_signal_asks_for_a_window_unless_it_is_named(tmp_path):
    numbers = [signal.SIGUSR1, signal.SIGUSR2]
    before = [signal.getsignal(number) for number in numbers]
    with Tracer(tmp_path, run="none"):
        assert [signal.getsignal(number) for number in numbers] == before
    with Tracer(tmp_path, run="one", signal="SIGUSR2"):
        assert [signal.getsignal(number) == old for number, old in zip(numbers, before, strict=True)] == [True, False]
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_signal_that_the_process_ignores_stays_ignored(tmp_path, log):
    before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        with Tracer(tmp_path, run="run", signal="SIGUSR2"):
            assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert "doesn't request a window" in log()[0]
