"""What the ring has of machine, process and device."""

import pytest

from kinetoscope.events import EventLog
from kinetoscope.output.ring import Ring, last_minutes, ring_file
from kinetoscope.sampling import samplers
from kinetoscope.sampling.procfs import has_proc
from kinetoscope.sampling.samplers import Sample
from kinetoscope.session.minutes_sampler import MinutesSampler

pytestmark = pytest.mark.skipif(not has_proc(), reason="this system has no /proc")

DRIVER = {"power": 312.5, "temperature": 61.0, "clock": 1410.0, "throttled": 1.0}
STATS = {"allocated_bytes.all.current": 700, "reserved_bytes.all.current": 900}


@pytest.fixture
def ring():
    ring = Ring()
    yield ring
    ring.close()


def minutes(ring, run):
    file = ring_file(run, 0)
    (run / ".work").mkdir(exist_ok=True)
    (run / ".work" / file.name).write_bytes(ring.content())
    return last_minutes(run, 0)


def test_a_sample_has_machine_process_and_open_markers(ring, tmp_path):
    log = EventLog()
    log.begin("save_checkpoint of the whole model, with optimizer", (), None)
    sampler = MinutesSampler(ring, log, lambda: False)
    sampler.sample()
    sampler.sample()
    found = minutes(ring, tmp_path)
    counts = [len(of) for of in (found.memory, found.processor, found.disk, found.network, found.markers)]
    assert counts == [2] * 5
    assert found.memory[0][1] > 1 << 20
    assert [name for _, _, name in found.markers] == ["save_checkpoint of the whole model, with optimiz"[:48]] * 2
    assert [seen_ns for _, seen_ns, _ in found.markers] == [ns for ns, _, _ in found.memory]
    assert found.allocator == found.power == found.clock == ()


def test_a_device_is_asked_while_steps_go_on(ring, tmp_path, monkeypatch):
    monkeypatch.setattr(samplers, "allocator", lambda: (0, STATS))
    monkeypatch.setattr(samplers, "gpu", lambda: [Sample("gpu 0", name, value, "") for name, value in DRIVER.items()])
    MinutesSampler(ring, EventLog(), lambda: True).sample()
    found = minutes(ring, tmp_path)
    assert [of[0][1:] for of in (found.allocator, found.power, found.clock)] == [
        (700, 900),
        (312_500, 61_000),
        (1410, 1),
    ]


def test_a_driver_that_fails_is_not_asked_again(ring, tmp_path, monkeypatch):
    calls = []

    def fail():
        calls.append(1)
        raise ImportError("pynvml")

    monkeypatch.setattr(samplers, "gpu", fail)
    sampler = MinutesSampler(ring, EventLog(), lambda: True)
    sampler.sample()
    sampler.sample()
    assert (calls, len(minutes(ring, tmp_path).memory)) == ([1], 2)
