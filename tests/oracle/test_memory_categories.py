"""Categories of memory against torch's own memory timeline (torch.profiler._memory_profiler) of a fresh recording."""

from collections import Counter, defaultdict

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from kinetoscope_tb.measures.memory.allocations import allocations
from kinetoscope_tb.measures.memory.categories import Phases, category_numbers
from kinetoscope_tb.measures.memory.levels import device_memories
from kinetoscope_tb.names.memory_categories import CATEGORIES
from kinetoscope_tb.reader import read

NAMES = {
    "PARAMETER": "parameters",
    "GRADIENT": "gradients",
    "OPTIMIZER_STATE": "optimizer state",
    "ACTIVATION": "activations",
    "TEMPORARY": "workspace",
    "AUTOGRAD_DETAIL": "workspace",
}


def torch_categories(profiler):
    """The categories of the allocations by address and size, in order of time."""
    memory = profiler._memory_profile()
    found = defaultdict(list)
    for _, action, (key, version), size in memory.timeline:
        if action.name == "CREATE" and hasattr(key, "storage"):
            by_id = memory._categories._values[key.id].by_id
            category = by_id or memory._categories.get(key, version)
            found[key.storage.ptr, size].append(NAMES.get(category.name) if category else None)
    return found


def our_categories(path):
    trace = read(path)
    (memory,) = device_memories(trace)
    pieces = allocations([memory])
    numbers = category_numbers(trace, memory, pieces, Phases.of(trace))
    found = defaultdict(list)
    for record, size, number in zip(pieces["allocated"], pieces["size_bytes"], numbers, strict=True):
        if record >= 0:
            found[int(memory.address[record]), size].append(CATEGORIES[number])
    return found


@pytest.mark.parametrize("warm_up", [0, 2])
def test_what_both_name_is_named_alike(tmp_path, warm_up):
    model = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.GELU(), nn.Linear(256, 256), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        loss = nn.functional.cross_entropy(model(torch.randn(64, 64)), torch.randint(10, (64,)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(warm_up):
        step()
    activities = [ProfilerActivity.CPU]
    with profile(activities=activities, profile_memory=True, record_shapes=True, with_stack=True) as profiler:
        for _ in range(3):
            step()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    theirs, ours = torch_categories(profiler), our_categories(tmp_path / "trace.json")
    pairs = Counter()
    for place, names in ours.items():
        for own, other in zip(names, theirs.get(place, []), strict=False):
            pairs[own, other] += place[1]
    both = {pair: size for pair, size in pairs.items() if pair[0] != "unknown" and pair[1] is not None}
    agreed = sum(size for (own, other), size in both.items() if own == other)
    assert agreed >= 0.99 * sum(both.values())
    assert sum(both.values()) >= 0.8 * sum(pairs.values())
    assert {own for own, _ in both} >= {"gradients", "activations", "workspace"}
