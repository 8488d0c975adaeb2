"""Remedies: none that is there already, and those that fit the call that takes the time."""

import re

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine


def with_calls(names, op="aten::empty"):
    """The first claim about steps in which the host is in some calls while nothing is queued."""
    machine = Machine()

    def step(_):
        for _ in range(5):
            machine.kernel(MS)
        machine.wait()
        machine.op(op, lambda: [machine.call(name, 2 * MS) for name in names])

    return advice(Facts(machine.steps(step, 6)))[0]


def test_expandable_segments_are_advised_where_they_are_off():
    claim = with_calls(["cudaFree", "cudaMalloc"])
    assert claim.rule == "allocation"
    assert "expandable_segments:True" in claim.action


def test_expandable_segments_are_not_advised_where_memory_is_mapped():
    claim = with_calls(["cuMemUnmap", "cuMemMap"])
    assert claim.rule == "allocation"
    assert "cuMem" in claim.evidence
    assert "expandable_segments:True" not in claim.action
    assert "on already" in claim.action


@pytest.mark.parametrize("name", ["cudaHostAlloc", "hipHostMalloc", "cudaHostRegister"])
def test_pinning_belongs_into_the_loader(name):
    claim = with_calls([name], "aten::_pin_memory")
    assert claim.title.endswith("most of it in `aten::_pin_memory`.")
    assert "`DataLoader(pin_memory=True)`" in claim.action


@pytest.mark.parametrize(("version", "clause"), [("1.9.0", " (PyTorch 2)"), ("2.4.1", ""), (None, "")])
def test_torch_compile_is_advised_with_its_version_where_the_recorded_one_has_none(version, clause):
    machine = Machine(**({"kinetoscope": {"torch_version": version}} if version else {}))
    trace = machine.steps(lambda _: [machine.kernel(2 * US, host=50 * US) for _ in range(40)])
    (claim,) = [row for row in advice(Facts(trace)) if row.rule == "launch_bound"]
    assert f"`torch.compile(mode='reduce-overhead')`{clause} or" in claim.action


def test_what_a_slow_host_leaves_idle_is_said_with_what_other_causes_add():
    machine = Machine()

    def step(_):
        machine.load(MS)
        for _ in range(40):
            machine.kernel(2 * US, host=50 * US)

    (claim,) = [row for row in advice(Facts(machine.steps(step))) if row.rule == "launch_bound"]
    assert claim.title.startswith("The host launches work too slowly, which leaves the GPU idle for ")
    assert re.search(r", besides (998|999|1) .s for other causes", claim.evidence)
