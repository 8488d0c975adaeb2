"""Checkpoints, evaluations and compilations: others wait for them in healthy jobs, too."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kinetoscope_tb.distributed.hangs.slow_work import LONGEST_S, slow_work
from kinetoscope_tb.reader.flight_recorder.hang_report import HangReport, StackLine

MAIN = StackLine("/job/train.py", 88, "__main__.main", 39.0)


def report(*functions, markers=()):
    """What a rank wrote that is in these functions, the outermost first."""
    lines = [StackLine("/x.py", 1, function, 30.0) for function in functions[::-1]]
    return HangReport(8, 1, 7, 40.0, None, "step", (*lines, MAIN), None, "S", "futex_do_wait", None, markers, "")


def status(**changes):
    return SimpleNamespace(**({"state": "running", "current_step_s": 41.0} | changes))


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("torch.serialization.save", "checkpoint"),
        ("torch.distributed.checkpoint.state_dict_saver.save", "checkpoint"),
        ("safetensors.torch.save_file", "checkpoint"),
        ("transformers.trainer.Trainer._save_checkpoint", "checkpoint"),
        ("__main__.save_model", "checkpoint"),
        ("__main__.checkpoint", "checkpoint"),
        ("transformers.trainer.Trainer.evaluate", "evaluation"),
        ("lightning.pytorch.loops.evaluation_loop._EvaluationLoop.run", "evaluation"),
        ("__main__.run_validation", "evaluation"),
        ("torch._dynamo.convert_frame.ConvertFrame.__call__", "compilation"),
        ("torch._inductor.async_compile.AsyncCompile.wait", "compilation"),
        ("torch._inductor.runtime.triton_heuristics.CachingAutotuner.autotune_to_one_config", "compilation"),
        ("torch.compile", "compilation"),
        ("torch._dynamo.eval_frame._TorchDynamoContext.__call__.<locals>.compile_wrapper", None),
        ("torch._inductor.output_code.CompiledFxGraph.__call__", None),
        ("torch.utils.checkpoint.checkpoint", None),
        ("torch.serialization.load", None),
        ("torch.nn.modules.module.Module.eval", None),
        ("torch.utils.data.dataloader.DataLoader.__next__", None),
        ("__main__.load_checkpoint", None),
        ("__main__.train_and_evaluate", None),
        ("__main__.validate_batch", None),
        ("__main__.retrieval", None),
        ("__main__.save_figure", None),
    ],
)
def test_a_function_says_what_a_rank_does(function, kind):
    work = slow_work(report(function, "torch.something.inner"), status())
    assert (work.kind if work else None) == kind


@pytest.mark.parametrize(
    ("marker", "kind"),
    [("save checkpoint", "checkpoint"), ("Checkpoint", "checkpoint"), ("eval", "evaluation"), ("forward", None)],
)
def test_a_marker_says_it_too(marker, kind):
    work = slow_work(report("__main__.write", markers=((marker, 33.0),)), status())
    assert (work and (work.kind, work.seconds)) == (kind and (kind, 33.0))


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, None),  # no journal
        ({}, status(state="dead")),
        ({}, status(state="silent")),
        ({}, status(current_step_s=LONGEST_S + 1)),
        ({"step_s": LONGEST_S + 1}, status(current_step_s=None)),
        ({"state": "D"}, status()),  # such as a file server that is gone
        ({"reason": "sigterm"}, status()),
    ],
)
def test_work_of_a_rank_that_is_gone_or_stuck_is_none(changes, state):
    saving = report("torch.serialization.save")
    assert slow_work(saving, status()).seconds == 30.0
    assert slow_work(replace(saving, **changes), state) is None


IMPORT = StackLine("<frozen importlib._bootstrap>", 1360, "importlib._bootstrap._find_and_load", 20.0)
LIBRARY = StackLine("/usr/lib/python3.11/site-packages/library.py", 1, "library.<module>", 20.0)
OWN_MODULE = StackLine("/job/training.py", 1, "training.<module>", 20.0)
COMPILE = StackLine("/usr/lib/python3.11/site-packages/torch/__init__.py", 1, "torch.compile", 30.0)


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        ((IMPORT, MAIN), "import"),
        ((LIBRARY, IMPORT, MAIN), "import"),
        ((IMPORT, LIBRARY, IMPORT, OWN_MODULE, IMPORT, MAIN), "import"),
        ((LIBRARY, IMPORT, COMPILE, MAIN), "compilation"),
        ((OWN_MODULE, IMPORT, MAIN), None),  # a program that trains in a module's body
        ((LIBRARY, MAIN), None),
    ],
)
def test_an_import_of_a_library_is_slow_work(stack, kind):
    work = slow_work(replace(report(), stack=stack), status())
    assert (work.kind if work else None) == kind
