"""The graph of a recording predicts what the simulator does when a part of a job takes less time, hidden or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from blind import activities as act
from blind.cases import Case, healthy_ns, large
from blind.pairs import LOADER, predicted_frac
from blind.training import Training, next_batch, simulate, step_ns
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace import Trace

BASE = large(Random(11), steps=16, layers=2, tokens=4096, hidden=2048, noise=0)
AHEAD = large(Random(11), steps=16, layers=2, tokens=4096, hidden=2048, noise=0, reads_loss=False)
NS = healthy_ns(BASE)
Job = Callable[[float], Training]  # from the share of a part that stays


def loading(job: Training, share: float) -> Job:
    """A job whose main thread loads for such a share of its step, or for a part of that."""
    return lambda factor: job.with_hook("data", lambda place: next_batch(place, int(NS * share * factor)))


def computing(job: Training, share: float) -> Job:
    """The same with an operator on the host."""

    def with_operator(factor: float) -> Training:
        def work(place: act.Place) -> None:
            with place.host.operator("mylib::tokenize"):
                place.host.spend(NS * share * factor)

        return job.with_hook("start", work)

    return with_operator


@pytest.fixture(scope="module")
def recording_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Job], tuple[Trace, float]]:
    """Gives the recording of a whole job and the length of its step; each job is simulated once."""

    @cache
    def recording(job: Job) -> tuple[Trace, float]:
        case = Case("", job(1))
        return read(case.record(tmp_path_factory.mktemp("job"))), case.step_ns

    return recording


@pytest.mark.parametrize("percent", [25, 50, 100])
@pytest.mark.parametrize(
    ("job", "target"),
    [
        pytest.param(loading(BASE, 0.8), LOADER, id="exposed loader"),
        pytest.param(loading(AHEAD, 1.4), LOADER, id="partly hidden loader"),
        pytest.param(loading(AHEAD, 0.5), LOADER, id="hidden loader"),
        pytest.param(computing(BASE, 0.6), "mylib::", id="exposed operator"),
        pytest.param(computing(AHEAD, 1.3), "mylib::", id="partly hidden operator"),
    ],
)
def test_less_of_it_saves_what_it_does_on_the_machine(
    job: Job, target: str, percent: int, recording_of: Callable[[Job], tuple[Trace, float]]
):
    (trace, whole_ns), less = recording_of(job), job(1 - percent / 100)
    measured = step_ns(simulate(less), less.steps) / whole_ns
    assert predicted_frac(trace, target, percent / 100) == pytest.approx(measured, abs=0.05)
