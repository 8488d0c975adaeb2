"""A recorded training has one name in the Scalars tab and in ours, and its curves are there."""

import gzip
import json
import subprocess
import sys

from contract.running import serving
from support.waiting import wait_for

TRAINING = """
import sys, torch
from kinetoscope import Tracer, cyclic
torch.set_num_threads(1)
with Tracer(sys.argv[1], run="resnet/one", schedule=cyclic(warmup=1, active=2)) as tracer:
    for batch in tracer.steps(range(6), samples=8):
        torch.ones(64, 64).mm(torch.ones(64, 64))
"""


def test_a_training_has_one_name_in_both_tabs(tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_SCALARS", "on")
    subprocess.run([sys.executable, "-c", TRAINING, str(tmp_path)], check=True, capture_output=True)
    (trace,) = tmp_path.rglob("*.pt.trace.json.gz")
    steps = json.loads(gzip.decompress(trace.read_bytes()))["kinetoscope"]["step_times_ns"]
    with serving(f"--logdir={tmp_path}", "--reload_interval=1") as server:
        run = wait_for(lambda: server.plugin("runs").json["runs"])
        tags = wait_for(
            lambda: server.ask("data/plugin/scalars/tags").json,
            is_right=lambda told: "windows/step_s" in told.get("resnet/one", {}),
        )
        assert "resnet/one" in json.dumps(run)
        assert {"steps/duration_s", "steps/samples_per_s", "windows/cpu_exec_s"} <= set(tags["resnet/one"])
        points = server.ask("data/plugin/scalars/scalars", run="resnet/one", tag="steps/duration_s").json
        assert [step for _, step, _ in points] == [1, 2, 3, 4, 5, 6]
        rates = server.ask("data/plugin/scalars/scalars", run="resnet/one", tag="steps/samples_per_s").json
        for (_, _, seconds), (_, _, rate) in zip(points, rates, strict=True):
            assert abs(seconds * rate - 8) < 1e-3
        ((_, at, mean),) = server.ask("data/plugin/scalars/scalars", run="resnet/one", tag="windows/step_s").json
        recorded = [(end - start) / 1e9 for _, start, end in steps]
        assert at == 3
        assert 0 < mean <= max(recorded)
