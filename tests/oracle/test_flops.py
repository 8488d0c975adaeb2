"""The work of operators against torch's own counting, on fresh recordings of the host."""

import pytest
import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from kinetoscope_tb.measures.calls.matrix_work import FORMULAS, Inputs, UnknownWork
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.device.operator_efficiency import operator_efficiency

BY_PROFILER = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
"""What `with_flops` counts as we do; it counts conv2d, not the convolution inside, and no attention."""


def products():
    torch.addmm(torch.randn(6), torch.randn(4, 5), torch.randn(5, 6))
    torch.baddbmm(torch.randn(3, 4, 6), torch.randn(3, 4, 5), torch.randn(3, 5, 6))
    torch.einsum("bij,bjk->bik", torch.randn(3, 4, 5), torch.randn(3, 5, 6))
    torch.matmul(torch.randn(2, 3, 4, 5), torch.randn(5, 6))
    functional.linear(torch.randn(7, 5), torch.randn(6, 5), torch.randn(6))


def convolutions():
    x = torch.randn(2, 4, 17, 19, requires_grad=True)
    for layer in (
        torch.nn.Conv2d(4, 8, 3, stride=2, padding=1),
        torch.nn.Conv2d(4, 8, (3, 5), dilation=2),
        torch.nn.Conv2d(4, 6, 3, padding="same"),
        torch.nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1),
    ):
        layer(x).sum().backward()
    torch.nn.Conv1d(4, 6, 3)(torch.randn(2, 4, 20)).sum().backward()
    torch.nn.Conv3d(4, 6, 3)(torch.randn(2, 4, 5, 6, 7)).sum().backward()


def recorded(run, path, **options):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, **options) as profiler:
        run()
    profiler.export_chrome_trace(str(path))
    return profiler, operator_efficiency(read(path))


@pytest.mark.parametrize("run", [products, convolutions])
def test_operations_are_those_of_torch_s_flop_counter(run, tmp_path):
    counter = FlopCounterMode(display=False)
    with counter:
        run()
    _, table = recorded(run, tmp_path / "trace.json")
    assert table["work_flop"].null_count() == 0
    assert (table["work_flop"] * table["calls"]).sum() == counter.get_total_flops()


def test_operations_are_those_that_the_profiler_counts(tmp_path):
    """They are in no trace file: kineto's exporter leaves them out."""
    profiler, table = recorded(products, tmp_path / "trace.json", with_flops=True)
    ours: dict[str, int] = {}
    for name, flop, calls in table.select("name", "work_flop", "calls").rows():
        ours[name] = ours.get(name, 0) + flop * calls
    theirs = {event.key: event.flops for event in profiler.key_averages() if event.key in BY_PROFILER and event.flops}
    assert ours == theirs


def test_a_weight_s_gradient_of_a_grouped_convolution_is_grouped_too(tmp_path):
    """Torch's counter takes all pairs of channels for it, also where only those of one group meet."""
    x, layer = torch.randn(2, 4, 10, 10), torch.nn.Conv2d(4, 8, 3, groups=2, bias=False)
    _, table = recorded(lambda: layer(x).sum().backward(), tmp_path / "trace.json")
    each = 2 * 2 * 8 * 8 * (8 * 2 * 9)
    assert sorted(table.select("name", "work_flop").rows()) == [
        ("aten::convolution", each),
        ("aten::convolution_backward", each),
    ]


def test_attention_is_what_torch_counts_on_devices(tmp_path):
    q, k = (torch.randn(2, 4, n, 8, requires_grad=True) for n in (16, 24))
    _, table = recorded(
        lambda: functional.scaled_dot_product_attention(q, k, k).sum().backward(), tmp_path / "trace.json"
    )
    sizes = q.shape, k.shape, k.shape
    assert dict(table.select("name", "work_flop").rows()) == {
        "aten::_scaled_dot_product_flash_attention_for_cpu": sdpa_flop_count(*sizes),
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward": sdpa_backward_flop_count(q.shape, *sizes),
    }


def test_causal_attention_counts_the_pairs_that_are_attended_to(tmp_path):
    q = torch.randn(1, 1, 16, 8)
    _, table = recorded(
        lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True), tmp_path / "trace.json"
    )
    assert table["work_flop"].to_list() == [2 * 2 * 8 * (16 * 17 // 2)]


@pytest.mark.parametrize("name", [name for name in FORMULAS if "attention" in name])
def test_is_causal_is_where_torch_s_signature_has_it(name):
    arguments = [a.name for a in getattr(torch.ops.aten, name.removeprefix("aten::")).default._schema.arguments]
    shape = [2, 4, 16, 8]
    shapes = [shape] * len(arguments)
    values = ["True" if argument == "is_causal" else "" for argument in arguments]
    FORMULAS[name](Inputs(shapes, ["float"] * len(arguments), values))
    with pytest.raises(UnknownWork, match="causal"):
        FORMULAS[name](Inputs(shapes, ["float"] * len(arguments), [""] * len(arguments)))
