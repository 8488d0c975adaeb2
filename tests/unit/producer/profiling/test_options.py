"""`Tracer(profiler={…})` passes on what torch.profiler.profile accepts, and refuses everything else at once."""

from inspect import signature

import pytest
import torch
from torch.profiler import profile

from kinetoscope import Tracer, UsageError
from kinetoscope.profiling.options import PROFILER_ARGUMENTS, Options

OF_TRACER = {"activities", "schedule", "on_trace_ready", "record_shapes", "profile_memory"}
OF_TRACER |= {"with_stack", "with_flops", "with_modules"}


def test_each_argument_of_torch_s_profiler_is_tracer_s_or_a_key():
    assert set(signature(Tracer.__init__).parameters) > OF_TRACER
    assert set(signature(profile.__init__).parameters) - {"self", "use_cuda"} <= OF_TRACER | PROFILER_ARGUMENTS
    assert not PROFILER_ARGUMENTS & set(signature(Tracer.__init__).parameters)


@pytest.mark.parametrize("key", [*sorted(OF_TRACER), "use_cuda"])
def test_a_key_that_tracer_has_an_argument_for_is_refused(tmp_path, key):
    argument = "activities" if key == "use_cuda" else key
    with pytest.raises(UsageError, match=rf"profiler={{'{key}': …}}: use Tracer\({argument}=…\) instead"):
        Tracer(tmp_path, profiler={key: None})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"with_stakc": True}, "'with_stakc': …}: unknown key; accepted are acc_events, .*experimental_config"),
        ({"self": None}, "'self'"),
        ({3: True}, "3"),
        ("acc_events", "profiler='acc_events': it must be a mapping"),
        ([("acc_events", True)], "it must be a mapping"),
        ({"experimental_config": {"verbose": True}}, "experimental_config={'verbose': True}"),
        ({"custom_trace_id_callback": "an id"}, "custom_trace_id_callback='an id' isn't callable"),
    ],
)
def test_what_can_never_work_is_refused(tmp_path, arguments, message):
    with pytest.raises(UsageError, match=message):
        Tracer(tmp_path, profiler=arguments)


def test_values_are_passed_on_and_none_is_torch_s_default():
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    options = Options(profiler={"experimental_config": config, "acc_events": True, "post_processing_timeout_s": None})
    arguments = options.arguments(str)
    assert arguments["experimental_config"] is config
    assert arguments["acc_events"] is True
    assert options.acc_events
    assert "post_processing_timeout_s" not in arguments
    assert Options(profiler={"post_processing_timeout_s": 3.0}).arguments(str)["post_processing_timeout_s"] == 3.0


def test_each_window_is_named_by_the_tracer_even_where_the_program_has_a_callback():
    arguments = Options(profiler={"custom_trace_id_callback": lambda: "program"}).arguments(lambda: "tracer")
    assert arguments.get("custom_trace_id_callback", lambda: "tracer")() == "tracer"
