"""Iterations of servers by name: what vLLM, SGLang, ATOM, TensorRT-LLM and xDiT call each pass through the model.

Servers don't call `profiler.step()`. They put an annotation around each iteration; its name says which requests and
tokens the scheduler chose. Each row of the table below is one form of it, and tests/unit/names/test_iterations.py holds
a real name for each. Recordings with Python stacks also have the function that runs an iteration.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from .kernel_families import kernel_family, uses_kv_cache
from .kernels import step_number
from .regex import regex

PHASES = ("prefill", "decode", "mixed", "draft", "diffusion", "capture", "idle", "other")
"""Phases of an iteration: `draft` runs the draft model of speculative decoding, `idle` has no request and only takes
part in collectives, `other` is one whose phase its name doesn't say."""

SERVERS = ("vLLM", "SGLang", "ATOM", "TensorRT-LLM", "capture", "inferred")
"""Inference servers, which run the loop themselves; captures of graphs are theirs, too."""

USER_PATTERN = "KINETOSCOPE_ITERATIONS"
"""Environment variable with one more form: a regular expression with any of the named groups below."""
USER_GROUPS = ("phase", "batch", "tokens", "context", "generation", "context_tokens", "generation_tokens")

_LONGEST = 1_000  # characters of a name that marks an iteration
_MOST = 1 << 40  # requests or tokens of an iteration

Fields = dict[str, str]


@dataclass(frozen=True)
class IterationName:
    """What the name of an iteration says; None where it doesn't.

    Args:
        engine: The server that writes such names, or `user`.
        phase: One of PHASES.
        batch: Requests in the batch; of a capture the size that was captured.
        tokens: Tokens that the model processes, of prompts and of answers.
    """

    engine: str
    phase: str
    batch: int | None = None
    tokens: int | None = None


def _counts_of(fields: Fields) -> tuple[str, int | None, int | None]:
    """The phase, requests and tokens of a name that counts requests with prompt tokens, and those that generate."""
    context, generation = int(fields["context"]), int(fields["generation"])
    phase = ("idle", "decode", "prefill", "mixed")[2 * (context > 0) + (generation > 0)]
    lengths = [fields[key] for key in ("context_tokens", "generation_tokens") if fields.get(key) is not None]
    return phase, context + generation, sum(map(int, lengths)) if len(lengths) == 2 else None


def _vllm(fields: Fields) -> tuple[str, int | None, int | None]:
    return _counts_of(fields)


def _tensorrt_llm(fields: Fields) -> tuple[str, int | None, int | None]:
    """Newer releases add the tokens of prompts. A request that generates has one token, unless it is speculative."""
    if fields["context_tokens"] is None and int(fields["context"]) > 0:
        return _counts_of(fields)
    return _counts_of(
        {**fields, "context_tokens": fields["context_tokens"] or "0", "generation_tokens": fields["generation"]}
    )


_SGLANG_PHASES = {
    "EXTEND": "prefill",
    "SPLIT_PREFILL": "prefill",
    "DECODE": "decode",
    "TARGET_VERIFY": "decode",
    "MIXED": "mixed",
    "IDLE": "idle",
    "DUMMY_FIRST": "idle",
    "VERIFY": "decode",
    "DRAFT": "draft",
    "DRAFT_EXTEND": "draft",
    "DRAFT_EXTEND_V2": "draft",
}
_NUMBERS = regex(r"\b(\w+)=(\d+)")


def _sglang(fields: Fields) -> tuple[str, int | None, int | None]:
    """ForwardMode and batch; a decoded request has one token unless g_sq counts more (speculative decoding)."""
    numbers = {key: int(value) for key, value in _NUMBERS.findall(fields["rest"])}
    phase, batch = _SGLANG_PHASES.get(fields["mode"], "other"), numbers.get("bs")
    if fields["mode"] == "EXTEND":
        return phase, batch, numbers.get("toks")
    if fields["mode"] == "DECODE":
        return phase, batch, numbers.get("g_sq", batch)
    if fields["mode"] in ("VERIFY", "TARGET_VERIFY"):
        return phase, batch, numbers.get("g_sq")
    if fields["mode"] == "MIXED" and {"c_sq", "g_sq"} <= numbers.keys():
        return phase, batch, numbers["c_sq"] + numbers["g_sq"]
    return phase, batch, 0 if phase == "idle" else None


def _atom(fields: Fields) -> tuple[str, int | None, int | None]:
    """`p=` counts the requests of a decode that are still in their prompt."""
    numbers = {key: int(value) for key, value in _NUMBERS.findall(fields["rest"])}
    phase = {"prefill": "prefill", "draft": "draft"}.get(fields["mode"], "decode")
    if phase == "decode" and numbers.get("p"):
        phase = "mixed"
    return phase, numbers.get("bs"), numbers.get("tok")


def _capture(fields: Fields) -> tuple[str, int | None, int | None]:
    return "capture", int(fields["batch"]), None


def _xdit(fields: Fields) -> tuple[str, int | None, int | None]:
    return "diffusion", int(fields["batch"]), None


_SGLANG_SPAN = r"step\[(?P<mode>[A-Z][A-Z0-9_]*)(?P<rest> bs=[^\]]*)\]"
_SUMS = r"\(sq(?P<{0}>\d+)sk\d+sqsq\d+sqsk\d+\)"
_Reader = Callable[[Fields], tuple[str, int | None, int | None]]
_FORMS: tuple[tuple[str, str, _Reader], ...] = (
    # vllm/v1/worker/gpu_worker.py, annotate_profile(): plain; with detailed_trace_annotation; older
    (
        "vLLM",
        r"execute_context_(?P<context>\d+)\((?P<context_tokens>\d+)\)"
        r"_generation_(?P<generation>\d+)\((?P<generation_tokens>\d+)\)",
        _vllm,
    ),
    (
        "vLLM",
        rf"execute_\d+_context_(?P<context>\d+){_SUMS.format('context_tokens')}"
        rf"_generation_(?P<generation>\d+){_SUMS.format('generation_tokens')}",
        _vllm,
    ),
    # vLLM 0.11 and 0.12. A request that continues a long prompt counts as cached: such an iteration is called decode.
    ("vLLM", r"execute_new_(?P<context>\d+)_cached_(?P<generation>\d+)", _vllm),
    # sglang/srt/utils/profile_utils.py, build_step_span_name()
    ("SGLang", _SGLANG_SPAN, _sglang),
    # atom/model_engine/model_runner.py, run_model(); bs=117/128 is a batch of 117 in a graph of 128
    ("ATOM", r"(?P<mode>(?:eager_)?decode|prefill)\[(?P<rest>bs=.*)\]", _atom),
    ("ATOM", r"(?P<mode>draft)\[\d+/\d+ (?P<rest>bs=[^\]]*)\]", _atom),
    # tensorrt_llm/_torch/pyexecutor/py_executor.py, _forward_step()
    (
        "TensorRT-LLM",
        r"\[Executor\] _forward_step \d+: (?P<context>\d+) ctx reqs, "
        r"(?:(?P<context_tokens>\d+) ctx tokens, )?(?P<generation>\d+) gen reqs",
        _tensorrt_llm,
    ),
    # the capture of a graph, as vLLM (FULL, PIECEWISE), SGLang (DECODE) and ATOM (decode, mixed_prefill) name it
    ("capture", r"capture_(?P<batch>\d+)_(?:FULL|PIECEWISE|DECODE|decode|prefill|mixed_prefill)\w*", _capture),
    ("xDiT", r"execute_diffusion_(?P<batch>\d+)_\d+x\d+", _xdit),
)
_TABLE = tuple((engine, regex(form), read) for engine, form, read in _FORMS)

_FUNCTIONS = (  # that run one iteration, as Python stacks name them
    ("vLLM", r"vllm/(?:v1/)?worker/(?:gpu/)?\w*model_runner\.py\(\d+\): execute_model$"),
    ("SGLang", r"sglang/srt/managers/tp_worker\.py\(\d+\): forward_batch_(?:generation|embedding)$"),
    ("ATOM", r"atom/model_engine/model_runner\.py\(\d+\): forward$"),
    ("TensorRT-LLM", r"tensorrt_llm/_torch/pyexecutor/py_executor\.py\(\d+\): _forward_step$"),
)
_FUNCTION_TABLE = tuple((engine, regex(form)) for engine, form in _FUNCTIONS)


def iteration_name(name: str) -> IterationName | None:
    """What an annotation says of the iteration that it marks; None if it marks none.

    Raises:
        ValueError: The user's own pattern isn't a regular expression with the known groups.
    """
    return _parse(name, os.environ.get(USER_PATTERN, ""))


@dataclass(frozen=True)
class SequenceLengths:
    """Sums over the requests of an iteration, of prompts (c_) and of requests that generate (g_).

    `sq` counts the new tokens of a request (queries), `sk` all its tokens so far, the new ones included (keys).

    Args:
        c_sq: Σ sq.
        c_sk: Σ sk.
        c_sqsq: Σ sq².
        c_sqsk: Σ sq · sk.
        g_sq: Σ sq.
        g_sk: Σ sk.
        g_sqsq: Σ sq².
        g_sqsk: Σ sq · sk.
    """

    c_sq: int
    c_sk: int
    c_sqsq: int
    c_sqsk: int
    g_sq: int
    g_sk: int
    g_sqsq: int
    g_sqsk: int

    @property
    def queries(self) -> int:
        """New tokens of all requests."""
        return self.c_sq + self.g_sq

    @property
    def keys(self) -> int:
        """Tokens whose keys and values attention reads, in each layer."""
        return self.c_sk + self.g_sk

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key that causal attention computes: Σ sq · sk − sq · (sq − 1) / 2."""
        return self.c_sqsk + self.g_sqsk - (self.c_sqsq - self.c_sq + self.g_sqsq - self.g_sq) // 2


_LENGTHS = regex(
    r"execute_\d+_context_\d+\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
    r"_generation_\d+\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
)
_SUMS_OF_LENGTHS = tuple(SequenceLengths.__annotations__)


@lru_cache(maxsize=20_000)
def sequence_lengths(name: str) -> SequenceLengths | None:
    """The sums of lengths in an annotation with details, as vLLM and SGLang write it; None in any other name."""
    if len(name) > _LONGEST:
        return None
    if match := _LENGTHS.fullmatch(name):
        numbers = [int(text) for text in match.groups()]
    elif match := re.fullmatch(_SGLANG_SPAN, name):
        numbers_of = dict(_NUMBERS.findall(match["rest"]))
        groups = ({key for key in _SUMS_OF_LENGTHS if key.startswith(group)} for group in "cg")
        if not any(group <= numbers_of.keys() for group in groups):
            return None
        numbers = [int(numbers_of.get(key, 0)) for key in _SUMS_OF_LENGTHS]
    else:
        return None
    return SequenceLengths(*numbers) if max(numbers) <= _MOST**2 else None


def iteration_function(name: str) -> str | None:
    """The server whose function runs one iteration under this name of a Python call; None for any other function."""
    return next((engine for engine, form in _FUNCTION_TABLE if form.search(name)), None)


@lru_cache(maxsize=20_000)
def _parse(name: str, user_pattern: str) -> IterationName | None:
    if len(name) > _LONGEST:
        return None
    if user_pattern and (match := _compile(user_pattern).fullmatch(name)):
        return _possible(_by_user(match.groupdict()))
    for engine, form, read in _TABLE:
        if match := form.fullmatch(name):
            return _possible(IterationName(engine, *read(match.groupdict())))
    return None


def _possible(name_parts: IterationName) -> IterationName:
    """The same without numbers that no batch has."""
    batch, tokens = (
        None if value is not None and value > _MOST else value for value in (name_parts.batch, name_parts.tokens)
    )
    return replace(name_parts, batch=batch, tokens=tokens)


@lru_cache
def _compile(pattern: str) -> re.Pattern[str]:
    try:
        form = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{USER_PATTERN}={pattern!r} is no regular expression: {error}.") from error
    if other_groups := form.groupindex.keys() - set(USER_GROUPS):
        raise ValueError(
            f"{USER_PATTERN} has the group {min(other_groups)!r}; the groups may be {', '.join(USER_GROUPS)}."
        )
    return form


def _by_user(fields: dict[str, str | None]) -> IterationName:
    numbers = {key: int(value) for key, value in fields.items() if value is not None and value.isdecimal()}
    phase, batch, tokens = "other", numbers.get("batch"), numbers.get("tokens")
    if {"context", "generation"} & numbers.keys():
        counts = {"context": "0", "generation": "0", **{key: str(number) for key, number in numbers.items()}}
        phase, count, sums = _counts_of(counts)
        batch, tokens = _first(batch, count), _first(tokens, sums)
    phase_name = (fields.get("phase") or "").lower()
    return IterationName("user", phase_name if phase_name in PHASES else phase, batch, tokens)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def show_iterations(
    annotations: Iterable[str],
    functions: Iterable[str],
    ranges: Iterable[str],
    kernels: Iterable[str],
    *,
    graphs: bool,
) -> bool:
    """Whether a recording with these names has iterations: marked, run by a server's function, or to be inferred.

    They are inferred where no training and no marked step is, and kernels use a paged cache of keys and values, and
    sample or run in graphs.

    Args:
        annotations: Names of annotations.
        functions: Names of Python calls.
        ranges: Names of operators and annotations.
        kernels: Names of kernels, copies and fills.
        graphs: Whether any graph was launched.
    """
    annotations = set(annotations)
    if any(map(iteration_name, annotations)) or any(map(iteration_function, functions)):
        return True
    if any(map(step_number, annotations)) or any(map(is_training, ranges)):
        return False
    kernels = set(kernels)
    return any(map(uses_kv_cache, kernels)) and (graphs or "sampling" in set(map(kernel_family, kernels)))


def is_training(name: str) -> bool:
    """Whether a range of this name is of a backward pass or an optimizer's step."""
    return name.startswith(("autograd::engine::", "Optimizer."))
