import pytest

from build import TraceBuilder
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace.torch_version import torch_version


@pytest.mark.parametrize(
    ("path", "version"),
    [  # the releases are those that the traces' own README infers from lines of torch's sources
        ("single/torch1.8.0_array_form/worker0.pt.trace.json.gz", "≈ 1.8"),
        ("single/torch1.8.1_schemaVersion/worker0.pt.trace.json.gz", "≈ 1.8"),
        ("runs/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz", "≈ 1.9"),
        ("single/hta_a100_rank3_of_8_control.json.gz", "≈ 1.12–1.13"),
        ("single/switch_transformers_a100_torch2.3.json", "≈ 2.0–2.3"),
        ("runs/particle_forward_batch_size_512/hmoss-6a49xb_1988833.1733770537022695153.pt.trace.json", "≈ 2.4–2.5"),
        ("single/tracelens_h100_nsfw_image_detection.json.gz", "≈ 2.6–2.11"),
        ("single/ncompass_h100nvl_test_trace.pt.trace.json", "≈ 2.6–2.11"),
        ("single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz", "≈ 2.6–2.11"),
    ],
)
def test_the_form_of_a_file_tells_about_which_torch_wrote_it(traces, path, version):
    assert torch_version(read(traces / path)) == version


def test_the_newest_are_told_by_the_host_s_name():
    assert torch_version(TraceBuilder(host_name="node7").op("a", 0, 5).build()) == "≈ 2.12 or later"


def test_our_recorder_says_it():
    trace = TraceBuilder(host_name="node7", kinetoscope={"torch_version": "2.13.0"}).op("a", 0, 5).build()
    assert torch_version(trace) == "2.13.0"


def test_a_form_that_tells_nothing_is_unknown(traces):
    assert torch_version(read(traces / "single/hta_backward_thread.json")) is None
