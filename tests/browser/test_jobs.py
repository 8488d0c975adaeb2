"""The questions that people open a profile with: each is answered within two clicks of the overview, on real traces.

Each test counts its clicks, and compares the figure on the page with the answer of the API.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations
from browser.lasting_page import LastingPage, lasting_app
from browser.traces import REPOSITORY
from contract.running import Server, serving
from kinetoscope_tb.compare.headline import growth_text
from kinetoscope_tb.names.text import few_digits, memory_size, percent
from support.real_traces import FOLDER, MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Locator, Page

    from browser.app import App

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)

INFERENCE = {"run": "inference", "worker": "rank0", "span": "1"}
LAST_RANK = {"run": "dlrm_8gpu_nccl", "worker": "rank0", "span": "1694128201545"}
MEMORY = {"run": "memory", "worker": "rank0", "span": "1"}
AFTER = {"run": "resnet50_num_workers_4", "worker": "worker0", "span": "1623212756351"}
BEFORE = {"run": "resnet50_num_workers_0", "worker": "worker0", "span": "1623143089861"}
SERVER = {"run": "server", "worker": "rank0", "span": "25"}
MOST_CLICKS = 2
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A TensorBoard with an inference, a run of eight ranks, a trace with memory, and a training before and after."""
    folder = tmp_path_factory.mktemp("jobs")
    for run, file, name in (
        ("inference", "claims/tracelens_h100_owlv2.json.gz", "rank0.1.pt.trace.json.gz"),
        ("memory", "single/switch_transformers_a100_torch2.3.json", "rank0.1.pt.trace.json"),
    ):
        (folder / run).mkdir()
        shutil.copy(FOLDER / file, folder / run / name)
    shutil.copytree(FOLDER / "runs/dlrm_8gpu_nccl", folder / LAST_RANK["run"])
    shutil.copytree(FOLDER / "runs/resnet50_num_workers_0", folder / BEFORE["run"])
    shutil.copytree(FOLDER / "claims/resnet50_num_workers_4", folder / AFTER["run"])
    shutil.copytree(REPOSITORY / "samples/h100/server", folder / SERVER["run"])
    with serving(f"--logdir={folder}") as server:
        for place in (INFERENCE, LAST_RANK, MEMORY, AFTER, BEFORE, SERVER):
            server.settled("view", view="overview", **place)
        yield server


@dataclass
class Visit:
    """Somebody with a question, who begins at the overview of a trace."""

    app: App
    server: Server
    place: dict[str, str]
    clicks: int = field(default=0, init=False)

    @property
    def page(self) -> Page:
        return self.app.page

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS
        self.app.settle()

    def entry(self, title: str) -> Locator:
        """An entry of the panel."""
        return self.page.get_by_role("navigation", name="Views").get_by_role(
            "button", name=re.compile(rf"^{title}(?!\w)")
        )

    def rows(self, view: str) -> dict[str, list[Any]]:
        """The columns of a view, by the API."""
        columns: dict[str, list[Any]] = self.server.settled("view", view=view, **self.place).json["data"]
        return columns

    def row(self, view: str) -> dict[str, Any]:
        """The first row of a view."""
        return {name: values[0] for name, values in self.rows(view).items()}


@pytest.fixture
def visit(large_page: Callable[[str], LastingPage], jobs: Server) -> Iterator[Any]:
    with lasting_app(large_page(jobs.base.rstrip("/"))) as app:

        def begin(place: dict[str, str]) -> Visit:
            app.open("overview", **place)
            return Visit(app, jobs, place)

        yield begin


def figure(text: str, unit: str) -> float:
    """The first number of a text, in the base unit."""
    match = re.search(r"-?[\d\u2009\u202f ]*\d(?:\.\d+)?", text)
    assert match, text
    return float(re.sub(r"\s", "", match[0])) * UNITS[unit]


def close(value: float) -> Any:
    """What the page shows of a value: at least three digits."""
    return pytest.approx(value, rel=5e-3)


def test_why_is_my_gpu_idle(visit: Any):
    me = visit(INFERENCE)
    expect(me.page.get_by_label("Verdict")).to_contain_text("zoom (scipy/ndimage/_interpolation.py:739)")
    me.click(me.entry("Idle"))
    idle = me.row("idle")
    parts = {
        name: value for name, value in idle.items() if name.endswith("_ns") and name not in ("busy_ns", "window_ns")
    }
    answer = me.page.locator(".answer")
    words = re.compile(r"^GPU 0 was idle for ([\d.]+)\s(\S+) of ([\d.]+)\s(\S+) \(.*waiting for data\.$")
    expect(answer).to_have_text(words)
    shown, unit, whole, of_whole = words.match(answer.inner_text()).groups()  # type: ignore[union-attr]
    assert [figure(shown, unit), figure(whole, of_whole)] == [
        close(idle["window_ns"] - idle["busy_ns"]),
        close(idle["window_ns"]),
    ]
    assert idle["late_data_loading_ns"] == max(value for name, value in parts.items() if name.startswith("late_"))
    culprit = me.row("idle_culprits")
    first = me.page.get_by_role("region", name="Idle time by culprit").locator("tr.row").first
    expect(first).to_contain_text("zoom_shift")
    assert "zoom_shift" in culprit["host"]
    expect(first).to_contain_text(few_digits(culprit["total_ns"] / 1e6))


def test_which_kernel_takes_the_time_and_which_line_launches_it(visit: Any):
    me = visit(INFERENCE)
    kernel, launcher = me.row("kernels"), me.row("kernels_by_op")
    top = me.page.locator(".top").first.locator("tbody tr").first
    expect(top).to_contain_text("softmax_forward bf16")
    expect(top).to_contain_text(launcher["op"])
    assert figure(top.locator("td").first.inner_text(), "ms") == close(kernel["total_ns"])
    me.click(me.page.locator(".top").first.get_by_role("button", name="softmax_forward"))
    expect(me.page.get_by_role("heading", level=1)).to_have_text("Kernels")
    expect(me.page.get_by_role("tabpanel")).to_contain_text(few_digits(kernel["total_ns"] / 1e6))
    me.click(me.page.locator("tr.row").first)
    expect(me.page.locator("main")).to_contain_text(
        re.compile(r"Launched by.*forward \(modeling_owlv2\.py:410\)", re.DOTALL)
    )


def test_is_communication_hidden(visit: Any):
    me = visit(LAST_RANK)
    exposed = me.row("exposed_time")
    me.click(me.entry("Idle"))
    me.click(me.page.get_by_role("tab", name="Overlap"))
    answer = me.page.locator(".answer")
    expect(answer).to_contain_text(f"computation hides {percent(exposed['overlap_frac'])} of communication")
    exposed_ms, whole_ms = re.findall(r"([\d.]+)\sms", answer.inner_text())
    assert float(exposed_ms) == close(exposed["exposed_communication_ns"] / 1e6)
    assert float(whole_ms) == close(exposed["communication_ns"] / 1e6)


def test_which_rank_is_late(visit: Any):
    me = visit(LAST_RANK)
    collectives = me.rows("collectives")
    (late, times), *_ = Counter(collectives["last"]).most_common()
    me.click(me.entry("Ranks"))
    sentence = me.page.get_by_role("region", name="Ranks", exact=True)
    expect(sentence).to_contain_text(
        f"Rank {late.removeprefix('rank')} was last at {times} of {len(collectives['last'])} "
    )
    me.click(me.page.get_by_role("tab", name="Communication"))
    rows = me.page.get_by_role("region", name="Collectives").locator("tr.row")
    expect(rows.filter(has=me.page.get_by_role("gridcell", name=late, exact=True))).to_have_count(times)
    expect(rows.first).to_contain_text(few_digits(collectives["total_wait_ns"][0] / 1e6))


def test_why_does_memory_peak(visit: Any):
    me = visit(MEMORY)
    device, category = me.row("memory_devices"), me.row("memory_peak_categories")
    tile = me.page.locator(".tiles .card").filter(has_text="Peak memory")
    assert figure(tile.locator("dd").inner_text(), "GiB") == close(device["peak_allocated_bytes"])
    me.click(me.entry("Memory"))
    holder = me.page.locator("main .sentence").first
    expect(holder).to_contain_text(category["operator"].strip("[]"))
    at_peak = me.page.get_by_role("region", name="At the peak by category")
    row = at_peak.locator("tr.row").first
    expect(row).to_contain_text(category["operator"])
    expect(row).to_contain_text(few_digits(category["alive_bytes"] / 2**30))
    expect(at_peak).to_contain_text(f"Alive {memory_size(device['peak_allocated_bytes'])}")


def test_what_changed(visit: Any):
    me = visit(AFTER)
    me.click(me.page.get_by_role("button", name="Compare with…"))
    earlier = me.page.get_by_role("dialog").get_by_role("listitem").filter(has_text=BEFORE["run"])
    me.click(earlier.first.get_by_role("button"))
    place = dict(part.split("=") for part in me.page.url.split("&p.pytorch_profiler.")[1:])
    base = {name: place[f"base_{name}"] for name in ("run", "worker", "span")}
    before = Visit(me.app, me.server, base).row("overview")
    after = me.row("overview")
    expect(me.page.locator("main")).to_contain_text(growth_text(before["mean_ns"], after["mean_ns"]))
    expect(me.page.locator("main")).to_contain_text(
        re.compile(r"Largest change beyond noise: DataLoader \(step part\), [\d.]+ → [\d.]+\sms, −")
    )


def test_what_limits_tokens_per_second(visit: Any):
    me = visit(SERVER)
    me.click(me.page.get_by_role("tab", name="Limits"))
    sentence = me.page.locator("main .sentence")
    expect(sentence).to_contain_text("tokens/s")
    expect(sentence).to_have_text(me.row("limits_summary")["title"])


def test_are_the_numbers_trustworthy(visit: Any):
    me = visit(SERVER)
    me.click(me.page.get_by_role("button", name="Trace health:"))
    health = me.rows("health")
    rows = me.page.get_by_role("treegrid").first.locator("tr.row")
    expect(rows).to_have_count(len(health["rule"]))
    expect(rows.first).to_contain_text(health["level"][0])
    expect(rows.first).to_contain_text(health["consequence"][0].replace("`", ""))


def test_find_a_kernel_and_measure_it(visit: Any):
    me = visit(INFERENCE)
    kernel = me.row("kernels")
    me.click(me.entry("Timeline"))
    me.page.keyboard.press("/")
    me.page.keyboard.type("cunn_SoftMaxForward")
    me.page.keyboard.press("Enter")
    assert "cunn_SoftMaxForward" in kernel["name"]
    first = me.page.get_by_role("list", name="Matching names").get_by_role("listitem").first
    expect(first).to_contain_text(str(kernel["calls"]))
    expect(first).to_contain_text(few_digits(kernel["total_ns"] / 1e6))


def test_share_what_is_seen(visit: Any, jobs: Server):
    me = visit(INFERENCE)
    me.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    me.click(me.entry("Idle"))
    shown = me.page.locator(".answer").inner_text()
    me.click(me.page.get_by_role("button", name="Copy link"))
    expect(me.page.get_by_role("button", name="Copied")).to_be_visible()
    link = me.page.evaluate("navigator.clipboard.readText()")
    colleague = me.page.context.new_page()
    colleague.goto(link)
    expect(colleague.locator(".answer")).to_have_text(shown)
    colleague.close()


@pytest.mark.parametrize(("place", "scheme"), [(INFERENCE, "light"), (LAST_RANK, "dark"), (MEMORY, "dark")])
def test_every_entry_is_accessible(visit: Any, place: dict[str, str], scheme: str):
    me = visit(place)
    me.page.emulate_media(color_scheme=scheme)
    entries = me.page.get_by_role("navigation", name="Views").locator("> ul button")
    broken = {}
    for at in range(entries.count()):
        entries.nth(at).click()
        me.app.settle()
        if found := violations(me.page):
            broken[me.page.url] = found
    assert not broken
