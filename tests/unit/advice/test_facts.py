"""What rules know of a trace: freed where it is large, and computed again."""

from functools import cached_property

from kinetoscope_tb.advice.facts import _BY_ROW, Facts
from support.machine import A100, MS, US, Machine


def test_what_is_released_is_computed_again():
    machine = Machine(A100)

    def step(_):
        machine.op("aten::mm", lambda: machine.kernel(10 * US, "k"))
        machine.work(2 * MS)

    facts = Facts(machine.steps(step))
    assert all(isinstance(vars(Facts)[name], cached_property) for name in _BY_ROW)
    frames = {name: getattr(facts, name) for name in ("idle_parts", "late_parts", "kernels")}
    late_ns = facts.late.host.tolist()
    assert sum(late_ns) > 0
    facts.release()
    assert not vars(facts).keys() & {*_BY_ROW}
    assert all(getattr(facts, name).equals(frame) for name, frame in frames.items())
    assert facts.late.host.tolist() == late_ns
