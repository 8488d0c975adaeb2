"""Pseudonyms: other names for what a trace says of its owner, the same for the same name.

A name is kept where everybody has it: those of Python's library and of well-known public packages, operators of
PyTorch, and ranges that PyTorch, trainers and servers write. Any other name gets its kind and a number: file_3.py.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from functools import lru_cache

from ..names.annotations import annotation_name

_PUBLIC = frozenset(
    {
        *("torch", "torchvision", "torchaudio", "torchrec", "torchtitan", "torchtune", "functorch", "triton", "einops"),
        *("numpy", "scipy", "pandas", "polars", "pyarrow", "sklearn", "cv2", "PIL", "jax", "jaxlib", "flax", "optax"),
        *("transformers", "accelerate", "datasets", "tokenizers", "peft", "trl", "diffusers", "timm", "xformers"),
        *(
            "lightning",
            "pytorch_lightning",
            "lightning_fabric",
            "deepspeed",
            "megatron",
            "mmengine",
            "composer",
            "apex",
        ),
        *("vllm", "sglang", "tensorrt_llm", "flashinfer", "flash_attn", "transformer_engine", "ray", "kinetoscope"),
        *("aiter", "tqdm", "wandb", "tensorboard"),
    }
)
_NAMESPACES = _PUBLIC | {
    *("aten", "autograd", "c10d", "c10d_functional", "_c10d_functional", "prims", "prim", "inductor", "profiler"),
    *("quantized", "mkldnn", "onednn", "cudnn", "miopen", "nccl", "gloo", "mpi", "ucc", "fsdp", "static_runtime"),
    *("record_function_ops", "_C", "_C_cache_ops", "_C_custom_ar", "_moe_C"),
}
_LIBRARY = sys.stdlib_module_names - {"code", "test", "this", "token"} | {"<string>"}
_FRAME = re.compile(r"(?P<path>.+)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_INSTALLED = re.compile(r".*(?:(?:site|dist)-packages|lib[/\\]python3[.\d]*)[/\\]", re.DOTALL)
_MODULE = re.compile(r"nn\.Module: (?P<name>.+?)(?P<number>_\d+)?", re.DOTALL)
_BUILT_IN = re.compile(
    r"<built-in (?:function|method) (?P<name>\S*)(?: of (?P<owner>\S+) object(?: at 0x[0-9a-f]+)?)?>", re.DOTALL
)
_COMMON_FUNCTION = re.compile(r"<\w+>|__\w+__|forward|backward|main|step|train|wrapper|inner|run")
_BACKWARD = re.compile(r"\w+Backward\d+")
_ENGINE = re.compile(r"autograd::engine::evaluate_function: ", re.DOTALL)
_LIGHTNING = re.compile(r"((?:\[\w+\])+)(?:(?P<owner>.+)\.(?P<hook>\w+)|.+)", re.DOTALL)
_PROFILERS_OWN = re.compile(
    r"detach|record_param_comms|PyTorch Profiler \(\d+\)|Iteration Start: PyTorch Profiler|Record Window End|Resource|"
    r"Activity Buffer Request|Buffer Flush|Instrumentation|Runtime Triggered Module Loading|Lazy Function Loading|"
    r"Command Buffer Full|Pregraph bytecode|TorchDynamo Cache Lookup|triton_[a-z]{2,3}_fused\w*|Memcpy .*|Memset .*|"
    r"\[memory\]|\[OutOfMemory\]"
)
_COUNTER = re.compile(
    r"(?:cpu|gpu|memory|swap|disk|network|process|power|clock|temperature|fan|pcie|nvlink)\b.*", re.IGNORECASE
)
_THREAD = re.compile(r"thread \d+ \((?P<name>.*)\)", re.DOTALL)
_PUBLIC_THREAD = re.compile(
    r"python[\d.]*|pt_\w+|cuda-\w+|Spans|Traces|(?:Trace )?PyTorch Profiler|(?:GPU|CPU|XPU|stream|rank)[\s\d]*|"
    r"[\d\s.:-]*"
)


class Pseudonyms:
    """Other names, match by kind in the order in which they are asked for."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, str]] = defaultdict(dict)
        self.frame = lru_cache(maxsize=None)(self._frame)

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name."""
        names = self._names[kind]
        return names.setdefault(name, f"{kind}_{len(names) + 1}")

    def _frame(self, text: str) -> str:
        """A frame of a Python stack, or an nn.Module: `file.py(12): function`, `nn.Module: Name_0`."""
        if module := _MODULE.fullmatch(text):
            return f"nn.Module: {self.of('Module', module['name'])}{module['number'] or ''}"
        if built_in := _BUILT_IN.fullmatch(text):
            return text if _is_public_owner(built_in["owner"]) else f"<built-in function {self.of('function', text)}>"
        parts = _FRAME.fullmatch(text)
        if parts is None:
            return self.of("function", text)
        return f"{self.file(parts['path'])}({parts['line']}): {self.function(parts['path'], parts['function'])}"

    def file(self, path: str) -> str:
        """A source file: below its package if that is public."""
        below = _INSTALLED.sub("", path)
        return below if _is_public_file(below) else f"{self.of('file', path)}.py"

    def function(self, path: str, name: str) -> str:
        """A function of a source file."""
        is_public = _is_public_file(_INSTALLED.sub("", path)) or _COMMON_FUNCTION.fullmatch(name)
        return name if is_public else self.of("function", name)

    def stack(self, text: str) -> str:
        """A stack as torch writes it next to an operator."""
        return re.sub(r"[^;\n]+", lambda match: self.frame(match[0]), text)

    def operator(self, name: str) -> str:
        """An operator, or a range that was recorded as one."""
        if prefix := _ENGINE.match(name):
            return prefix[0] + self.operator(name[prefix.end() :])
        namespace, separator, _ = name.partition("::")
        if (separator and namespace.partition(".")[0] in _NAMESPACES) or _BACKWARD.fullmatch(name):
            return name
        return self.of("operator", name) if separator else self.annotation(name)

    def annotation(self, name: str) -> str:
        """A range that a program wrote."""
        if lightning := _LIGHTNING.fullmatch(name):
            owner = lightning["owner"] and f"{self.of('Module', lightning['owner'])}.{lightning['hook']}"
            return lightning[1] + (owner or self.of("annotation", name))
        is_public = annotation_name(name).source is not None or _PROFILERS_OWN.fullmatch(name)
        return name if is_public else self.of("annotation", name)

    def counter(self, name: str) -> str:
        """A counter."""
        return name if _COUNTER.fullmatch(name) else self.of("counter", name)

    def series(self, counter: str, name: str) -> str:
        """A series of a counter."""
        return name if _COUNTER.fullmatch(counter) else self.of("series", name)

    def other(self, name: str) -> str:
        """An event that is neither work nor an operator: a counter's, a span, a range on a device."""
        return name if _COUNTER.fullmatch(name) else self.annotation(name)

    def thread(self, name: str) -> str:
        """A thread or a process."""
        if _PUBLIC_THREAD.fullmatch(name):
            return name
        if match := _THREAD.fullmatch(name):
            return f"{name[: match.start('name')]}{self.thread(match['name'])})"
        return self.of("thread", name)

    def in_sentence(self, text: str) -> str:
        """A sentence that may hold names that have pseudonyms by now: the longest first, whole words alone."""
        names = {name: other for kind in self._names.values() for name, other in kind.items() if len(name) > 2}
        for name in sorted((name for name in names if name in text), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", names[name], text)
        return text


def _is_public_file(path: str) -> bool:
    """Whether a path begins with a public package or a module of Python's library."""
    first = re.split(r"[/\\]", path, maxsplit=1)[0]
    return first in _PUBLIC or first.removesuffix(".py") in _LIBRARY or first.startswith("<frozen ")


def _is_public_owner(owner: str | None) -> bool:
    """Whether the type whose method is called is built into Python or belongs to a public package."""
    first, dot, _ = (owner or "").partition(".")
    return not dot or first in _PUBLIC or first in sys.stdlib_module_names or first == "pybind11_builtins"
