"""The examples in torch's and Composer's documents run as they are, but for where their names are imported from."""

import gzip
import inspect
import json
import re
import textwrap
from types import SimpleNamespace

import pytest
import torch

import kinetoscope.composer
import kinetoscope.profiler
from kinetoscope import Tracer
from kinetoscope.composer import State
from kinetoscope.profiler import profile

N = 6
EXPORT, LOG = "prof.export_chrome_trace(", "on_trace_ready=torch.profiler.tensorboard_trace_handler('./log')"

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, over CUDA that isn't there


def document(seeds, number):
    (path,) = seeds.glob(f"{number:03d}_*.txt")
    return path.read_text(encoding="utf-8")


def indented_examples(text):
    """The code blocks of a document, by indentation."""
    blocks = re.split(r"\n(?=\S)", text)
    examples = [textwrap.dedent(block.partition("\n")[2]) for block in blocks]
    return [block for block in examples if "torch.profiler.profile(\n" in block]


def flat_examples(text):
    """The blocks of code of a document that has lost its indentation, with it."""
    parts = re.split(r"\.\. code-block:: python\n", text)[1:]
    return [restored(re.split(r'\n(?:Using|The following|You can|""")', part)[0]) for part in parts]


def restored(text):
    """Code with its indentation again, which these examples leave no doubt about."""
    lines, depth, brackets = [], 0, 0
    for line in text.replace("\n//", "\n#").replace("(\n...\n", "(\n").splitlines():
        code = line.partition("#")[0].strip() if line.startswith("#") else line
        if not brackets and code.startswith(("with ", "def ", "print(p.")):
            depth = 0
        lines.append("    " * depth + line)
        brackets += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        depth += not brackets and code.endswith(":")
    return "\n".join(lines)


def work(*_):
    torch.ones(4, 4).relu().sum()


def run(code, folder, monkeypatch, profiler=kinetoscope.profiler):
    """Run an example in a folder, with torch.profiler's names taken from `profiler`."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    names = ["code_to_profile", "code_to_profile_0", "code_to_profile_1", "code_to_profile_2"]
    names = {**dict.fromkeys(names, work), "code_iteration_to_profile": work, "N": N}
    names |= {"torch": SimpleNamespace(profiler=profiler), "ExecutionTraceObserver": profiler.ExecutionTraceObserver}
    exec(compile(code.replace('"/tmp/', '"'), "the example", "exec"), names)


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.pt.trace.json*"))


def content(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def operators(trace):
    return [event["name"] for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]


@pytest.fixture(params=["with indentation", "without"])
def examples(request, seeds):
    """The examples of torch's documents: everything at once; with a schedule."""
    if request.param == "without":
        return flat_examples(document(seeds, 1))[1:3]
    return indented_examples(document(seeds, 2))


def test_the_example_without_a_schedule(examples, tmp_path, monkeypatch, capsys):
    run(examples[0], tmp_path, monkeypatch)
    assert re.search(r"aten::relu .* 1 *\n", capsys.readouterr().out)
    (file,) = files(tmp_path)
    assert re.fullmatch(r"runs/[^/]+/rank0\.0\.pt\.trace\.json\.gz", file)
    assert operators(content(tmp_path / file)).count("aten::relu") == 1


def test_the_example_with_a_schedule_and_a_handler(examples, tmp_path, monkeypatch, capsys):
    run(examples[1], tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert re.search(r"aten::relu .* 2 *\n", printed)
    assert printed.count("Self CPU time total") == 1
    (file,) = files(tmp_path)
    assert file.endswith("/rank0.4.pt.trace.json.gz")
    assert operators(content(tmp_path / file)).count("aten::relu") == 2


def test_the_example_whose_handler_writes_a_file(examples, tmp_path, monkeypatch, log):
    code = examples[1].replace(f"# {EXPORT}", EXPORT)
    assert code != examples[1]
    for folder, profiler in (("torch", torch.profiler), ("ours", kinetoscope.profiler)):
        run(code, tmp_path / folder, monkeypatch, profiler)
    torch_s, ours = (content(tmp_path / folder / "test_trace_4.json") for folder in ("torch", "ours"))
    assert operators(ours) == operators(torch_s)
    assert ours["kinetoscope"]["steps_completed"] == 4
    (file,) = files(tmp_path)
    assert content(tmp_path / file) == ours
    assert log() == []


def test_the_example_for_tensorboard(examples, tmp_path, monkeypatch):
    code = examples[1].replace("on_trace_ready=trace_handler", "#").replace(f"# {LOG}", LOG)
    run(code, tmp_path, monkeypatch)
    (file,) = files(tmp_path)
    assert re.fullmatch(r"log/[^/]+/rank0\.4\.pt\.trace\.json", file)
    assert operators(content(tmp_path / file)).count("aten::relu") == 2


def test_the_example_that_toggles_what_is_collected(seeds, tmp_path, monkeypatch, capsys):
    example = flat_examples(document(seeds, 1))[0]
    assert "toggle_collection_dynamic" in example
    run(example, tmp_path, monkeypatch)
    assert "aten::relu" in capsys.readouterr().out


def test_the_example_with_an_observer_of_execution(seeds, tmp_path, monkeypatch):
    example = flat_examples(document(seeds, 1))[3]
    assert "ExecutionTraceObserver()" in example
    run(example, tmp_path, monkeypatch)
    assert json.loads((tmp_path / "execution_trace.json").read_text())["nodes"]
    assert len(files(tmp_path)) == 1


def test_every_name_of_torch_s_reference_is_there(seeds):
    reference = document(seeds, 2)
    for name in re.findall(r"^`(?:class )?torch\.profiler\.([a-z]\w*(?:\.\w+)?)", reference, re.MULTILINE):
        value = kinetoscope.profiler
        for part in name.split("."):
            value = getattr(value, part)
    methods = re.findall(r"^`(\w+)\(", reference, re.MULTILINE)
    assert {"export_chrome_trace", "key_averages", "step"} <= set(methods)
    assert [name for name in methods if not hasattr(Tracer, name)] == []
    signature = re.search(r"`class torch\.profiler\.profile\(\*, (.*?)\)`", reference, re.DOTALL)[1]
    assert set(re.findall(r"(\w+)=", signature)) <= set(inspect.signature(profile).parameters)


def test_composer_s_examples(seeds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, names = document(seeds, 4), {}
    imported = re.search(r"^ *from composer\.profiler import .*", text, re.MULTILINE)[0].strip()
    exec(imported.replace("composer.profiler", "kinetoscope.composer"), names)
    profiler = names["Profiler"](schedule=names["cyclic_schedule"](), trace_handlers=[])
    with State("run", profiler=profiler):
        (line,) = re.findall(r'^>>> (marker = profiler\.marker\("foo"\))$', text, re.MULTILINE)
        exec(line, names | {"profiler": profiler})
        assert type(profiler.marker("foo")).__name__ == "Marker"
