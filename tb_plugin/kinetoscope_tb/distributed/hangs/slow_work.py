"""Work for which others wait in healthy jobs too, by stacks and markers: checkpoints, evaluations and the like."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

from kinetoscope.journal.status import RankStatus

from ...reader.flight_recorder.hang_report import Activity, HangReport

CHECKPOINT, EVALUATION, COMPILATION, IMPORT = "checkpoint", "evaluation", "compilation", "import"
GERUNDS = {
    CHECKPOINT: "saving a checkpoint",
    EVALUATION: "evaluating",
    COMPILATION: "compiling",
    IMPORT: "importing modules",
}
LONGEST_S = 600.0
"""After that it isn't taken for healthy: torch's collectives give up after 10 minutes on NCCL."""

_UNINTERRUPTIBLE = "D"
_LIBRARIES = {
    CHECKPOINT: (r"torch\.serialization\.save$", r"torch\.distributed\.checkpoint\.", r"safetensors\..*save"),
    # Not the code that calls what is compiled already: it is in eval_frame, in compile_fx and in the caches.
    COMPILATION: (
        r"torch\.compile$",  # its first call imports the compiler
        r"torch\._dynamo\.(convert_frame|symbolic_convert|output_graph)\.",
        r"torch\._inductor\.(graph|scheduler|async_compile)\.",
        r"torch\._inductor\..*CachingAutotuner\.\w*(precompile|autotune|benchmark)",
        r"torch\.utils\.cpp_extension\.",
        r"triton\.compiler\.",
    ),
}
_WORDS = {  # of functions and markers; those that enclose the whole training, or load, are none
    CHECKPOINT: r"(?<![a-z])(save|saving|write|writing|dump)[ _.-]*"
    r"(checkpoint|ckpt|state|model|weights|pretrained|snapshot)"
    r"|^(checkpoint|checkpointing|ckpt)$|(checkpoint|ckpt)[ _.-]*(save|saving|write|writing)",
    EVALUATION: r"(?<![a-z])(eval|evaluate|evaluation|validation)(?![a-z])"
    r"|(?<![a-z])validate(_(epoch|loop|model|step))?$|EvaluationLoop",
}
_OTHER_WORDS = re.compile(r"train|load|restore|resume", re.IGNORECASE)


@dataclass(frozen=True)
class SlowWork:
    """What a rank does.

    Args:
        kind: CHECKPOINT, EVALUATION, COMPILATION or IMPORT.
        seconds: How long it did that when it wrote its report, at least.
        activity: Where its own code is.
    """

    kind: str
    seconds: float
    activity: Activity | None


def slow_work(report: HangReport, status: RankStatus | None) -> SlowWork | None:
    """The work that a rank does; None if it does none, or is gone, or can't go on, or works for ten minutes already.

    Args:
        report: What it wrote.
        status: What its journal says now.
    """
    is_alive = status is not None and status.state == "running" and report.reason == "step"
    elapsed_s = max(report.step_s, status.current_step_s or 0) if status else report.step_s
    if not is_alive or elapsed_s > LONGEST_S or report.state == _UNINTERRUPTIBLE:
        return None
    calls = [(_kind_of_call(line.function), line.seconds) for line in reversed(report.stack)]
    markers = [(_kind_of_name(name), seconds) for name, seconds in report.markers]
    candidates = (*calls, *markers, *_imports(report))
    work = next(((kind, seconds) for kind, seconds in candidates if kind), None)
    return SlowWork(*work, report.activity) if work else None


def _imports(report: HangReport) -> list[tuple[str, float]]:
    """Imports that the program's own code is in, the outermost first; not one in which that code itself runs."""
    libraries = takewhile(lambda line: not line.is_user, report.stack)
    return [(IMPORT, line.seconds) for line in libraries if line.function.startswith("importlib._bootstrap.")][::-1]


def _kind_of_call(function: str) -> str | None:
    kind = next((kind for kind, patterns in _LIBRARIES.items() if re.match("|".join(patterns), function)), None)
    is_torch = function.startswith("torch.")  # torch.utils.checkpoint is none of a model's state
    return kind or (None if is_torch else _kind_of_name(function.removesuffix(".run").rpartition(".")[2]))


def _kind_of_name(name: str) -> str | None:
    if _OTHER_WORDS.search(name):
        return None
    return next((kind for kind, words in _WORDS.items() if re.search(words, name, re.IGNORECASE)), None)
