"""What docs and comments mention of the code is there: files, symbols, and make targets."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("producer", "tb_plugin", "frontend", "tests", "samples")
GUIDES = ("CONTRIBUTING.md", "docs/architecture.md")  # pages that speak of the code itself
TOOLS = "docs/coming-from-other-tools.md"  # the first column of its tables is what other tools have
EXAMPLES = {"streams.py", "test_streams.py", "run.json"}  # what the guides have the reader write, and what a job writes
DOCSTRING = re.compile(r'^[ \t]*r?"""(.*?)"""', re.MULTILINE | re.DOTALL)
COMMENT = {  # by the ending of a file
    "py": re.compile(r"(?:^|(?<=\s))#\s.*", re.MULTILINE),
    **dict.fromkeys(("c", "h", "ts", "tsx"), re.compile(r"/\*.*?\*/|(?<![:\w\"'`])//[^\n]*", re.DOTALL)),
}
FOREIGN = {  # what comments and docs mention of other projects
    *("CPU_TYPE_ARM64", "CPU_TYPE_X86_64", "EM_AARCH64", "EM_X86_64", "IMAGE_FILE_DLL", "IMAGE_FILE_MACHINE_AMD64"),
    *("LC_LOAD_DYLIB", "LC_SYMTAB", "MH_DYLIB", "SHT_DYNAMIC", "SHT_DYNSYM"),
    *("AZURE_STORAGE_SAS_TOKEN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CUDA_MEMCPY_KIND_PTOP"),
    *("CUDA_MEMOPR_MEMORY_KIND", "ConfigLoader", "ENABLE_PYTORCH_EXECUTION_TRACE", "HIP_VERSION"),
    *("PIP_EXTRA_INDEX_URL", "STORAGE_EMULATOR_HOST", "SummaryWriter", "VLLM_TORCH_PROFILER_DIR"),
    *("_CATEGORY_TO_COLORS", "_CATEGORY_TO_INDEX", "_backward_impl", "_populate_cpu_children", "active_iterations"),
    *("backward_seq_id_uniqueness", "cuspy_async_export", "delay_iterations", "detailed_trace_annotation"),
    *("enable_cuda_sync_events", "gpu_kernel_causality", "gpu_model_runner.py", "ignore_frontend", "launch_dependents"),
    *("max_iterations", "merge_profiles", "mesh_dp_tp", "nccl_metadata", "nvjet_sm103", "profile_analysis"),
    *("profile_prefix", "save_dir", "slice_drop_overlapping_complete_event", "stream_sync_overlap"),
    *("stream_wait_corr_id_in_past", "stream_wait_corr_id_populated", "to_arrow", "to_pandas"),
    *("torch_profiler_record_shapes", "torch_profiler_with_stack", "warmup_iterations", "TORCH_FR_DUMP_TEMP_FILE"),
    *("TraceAnalysis", "TraceFuse", "export_memory_timeline", "tensorboard_trace_handler"),
    *("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "comm_lib_trace_rank_3", "nccl_trace_rank_3"),
}
FILE = re.compile(r"(?<![\w/.{}*<-])((?:[\w.-]+/)*[\w.-]+\.(?:py|c|h|tsx?|toml|css))\b(?![\w/{}*(])")
SYMBOL = re.compile(
    r"^(?:[a-z]\w*\.)?(_?[A-Z]{2}[A-Z0-9_]+|[A-Z][a-z]+(?:[A-Z][a-z]+)*|_?[a-z]+(?:_[a-z0-9]+)+)(?:\(.*\))?$"
)

CONSTANT = re.compile(r"(?<![\w`\"'.])_?[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b(?![\"'])")


@cache
def files() -> list[str]:
    """The files of the project, those that aren't committed yet included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("this is no git checkout")
    return [path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()]


@cache
def endings() -> set[str]:
    """Every path of a file, from any of its folders on."""
    return {"/".join(parts[i:]) for path in files() for parts in [path.split("/")] for i in range(len(parts))}


@cache
def sources() -> dict[str, tuple[str, str]]:
    """(the docstrings and comments, the code) of each source; files without comments are code."""
    paths = (path for path in files() if (path.split("/")[0] in CODE or "/" not in path) and not path.endswith(".md"))
    return {path: split(path) for path in paths}


def split(path: str) -> tuple[str, str]:
    """(the docstrings and comments, the code) of a file."""
    prose, code = [], (ROOT / path).read_text(encoding="utf-8", errors="replace")
    ending = path.rpartition(".")[2]
    for pattern in (DOCSTRING,) * (ending == "py") + tuple(COMMENT[e] for e in (ending,) if e in COMMENT):
        prose += [match[0] for match in pattern.finditer(code)]
        code = pattern.sub("", code)
    return "\n".join(prose), code


@cache
def words() -> set[str]:
    """The words of the code: docstrings and comments prove nothing."""
    own = Path(__file__).relative_to(ROOT).as_posix()  # it lists what isn't there
    texts = (code for path, (_, code) in sources().items() if path != own)
    return {word for text in texts for word in re.findall(r"\w+", text)} | {Path(path).stem for path in files()}


def is_page(path: str) -> bool:
    """Whether a file is documentation of today's code; the changelog speaks of earlier ones too."""
    return path.endswith(".md") and not path.startswith("tests/") and path != "CHANGELOG.md"


def code_in(page: str) -> list[str]:
    """What a page has as code within its sentences, and in columns that aren't of another tool."""
    text = re.sub(r"^ *```.*?^ *```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    if page == TOOLS:
        text = re.sub(r"^\|[^|]*\|", "|", text, flags=re.MULTILINE)
    return re.findall(r"`([^`]+)`", text)


@pytest.mark.parametrize("guide", GUIDES)
def test_guides_name_files_that_exist(guide):
    named = {path for code in code_in(guide) for path in FILE.findall(code)}
    assert {path for path in named - endings() if path.rpartition("/")[2] not in EXAMPLES} == set()


def symbols_in(text: str) -> set[str]:
    """What a text has as code and is a symbol's name, and names of constants anywhere."""
    code = {match[1] for words in re.findall(r"`([^`\n]+)`", text) if (match := SYMBOL.match(words))}
    return code | set(CONSTANT.findall(text))


def mentions() -> dict[str, set[str]]:
    """The symbols that each page mentions, and each source in its docstrings and comments."""
    pages = {path: symbols_in("".join(f"`{code}`" for code in code_in(path))) for path in files() if is_page(path)}
    return pages | {path: symbols_in(prose) for path, (prose, _) in sources().items()}


def test_pages_and_comments_name_symbols_that_exist():
    missing = {path: names - words() - FOREIGN for path, names in mentions().items()}
    assert {path: names for path, names in missing.items() if names} == {}, (
        "Name what is there. What is another project's belongs to FOREIGN in this file."
    )


def test_each_foreign_name_is_mentioned():
    texts = "\n".join([(ROOT / path).read_text(encoding="utf-8") for path in files() if is_page(path)])
    texts += "\n".join(prose for prose, _ in sources().values())
    assert {name for name in FOREIGN if name not in texts} == set()


def test_pages_and_comments_name_make_targets_that_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    texts = [prose for prose, _ in sources().values()] + [
        f"`{code}`" for path in files() if is_page(path) for code in code_in(path)
    ]
    assert {name for text in texts for name in re.findall(r"`make (\w+)", text)} <= targets


def test_pages_and_comments_name_files_that_exist():
    rooms = {part for path in sources() for part in path.split("/")[:-1] if not path.startswith(("tests", "samples"))}
    rooms -= {"tests"}  # other projects have such a folder too
    texts = {path: prose for path, (prose, _) in sources().items()}
    texts |= {path: "\n".join(code_in(path)) for path in files() if is_page(path)}
    mentioned = {(path, file) for path, text in texts.items() for file in FILE.findall(text) if "/" in file}
    missing = {(path, file) for path, file in mentioned if file.split("/")[0] in rooms and file not in endings()}
    assert {(path, file) for path, file in missing if file.rpartition("/")[2] not in EXAMPLES} == set()


def test_packages_list_modules_that_exist():
    packages = [
        path for path in sources() if path.endswith("/__init__.py") and path.startswith(("producer", "tb_plugin"))
    ]
    listed = {
        (path, name)
        for path in packages
        for line in re.findall(r"^([a-z_]+(?:, [a-z_]+)*)  +\S", sources()[path][0], re.MULTILINE)
        for name in line.split(", ")
    }
    assert {(path, name) for path, name in listed if not list((ROOT / path).parent.glob(f"{name}*"))} == set()
