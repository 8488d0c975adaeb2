"""The option that names the device of a trace that doesn't."""

import json

import pytest

from kinetoscope_tb.cli import main
from kinetoscope_tb.views import EVERY_VIEW
from support.machine import US, Machine

KERNEL = "some_bf16_s16816gemm_bf16_128x128_nn"


@pytest.fixture
def path(tmp_path):
    machine = Machine(device=None)
    shapes, types = [[4096, 4096]] * 2, ["c10::BFloat16"] * 2
    machine.steps(lambda _: machine.kernel(1000 * US, KERNEL, shapes=shapes, types=types))
    path = tmp_path / "unnamed.pt.trace.json"
    path.write_text(machine.builder.text())
    return path


def answer(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments), "--format", "json"])
    return ended.value.code, json.loads(capsys.readouterr().out)


def test_the_roof_is_that_of_the_device_that_the_user_names(path, capsys):
    _, without = answer(capsys, "view", "operator_efficiency", path)
    assert without["data"]["roof_frac"] == [None]
    code, named = answer(capsys, "view", "operator_efficiency", path, "--device", "NVIDIA H100 80GB HBM3")
    assert code == 0
    assert named["data"]["roof_frac"][0] == pytest.approx(2 * 4096**3 / 989.4e12 / 1e-3)
    _, advised = answer(capsys, "view", "advice", path, "--device", "AMD Instinct MI300X")
    assert advised["data"]["rule"][0] == "matmul_below_roof"
    assert "on AMD Instinct MI300X" in advised["data"]["evidence"][0]


def test_a_device_whose_limits_are_unknown_is_refused(path, capsys):
    code, failure = answer(capsys, "view", "advice", path, "--device", "H100")
    assert code == 1
    assert "'H100' aren't known. Pass the name that its driver reports" in json.dumps(failure)


def test_views_with_a_parameter_device_keep_it_as_a_number(path, capsys):
    with_number = [view.id for view in EVERY_VIEW.values() if any(p.name == "device" for p in view.parameters)]
    assert "gaps" in with_number
    code, failure = answer(capsys, "view", "gaps", path, "--device", "MI300X")
    assert (code, "is an integer" in json.dumps(failure)) == (1, True)
