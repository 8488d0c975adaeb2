"""The preview of a file equals what a slow reference finds in the events read so far."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.reader.preview import MOST_NAMES
from support.examples import examples
from support.strategies import builders

OF_CATEGORY = {
    "cpu_op": "operators",
    "user_annotation": "annotations",
    "python_function": "Python calls",
    "cuda_runtime": "runtime calls",
    "kernel": "kernels",
    "gpu_memcpy": "copies and fills",
    "gpu_memset": "copies and fills",
    "cpu_instant_event": "memory events",
    "cuda_sync": "others",
}
SPANNING = {"operators", "annotations", "runtime calls", "kernels", "copies and fills"}


def kind_of(event):
    kind = OF_CATEGORY[event["cat"]]
    return "annotations" if kind == "operators" and event["name"].startswith("enumerate(DataLoader)") else kind


def longest(rows):
    count, total = Counter(), Counter()
    for event in rows:
        count[event["name"]] += 1
        total[event["name"]] += event["dur"].ns
    ordered = sorted(count, key=lambda name: (-total[name], name))[:MOST_NAMES]
    return [(name, count[name], total[name]) for name in ordered]


def slow_preview(events):
    rows = {kind: [event for event in events if kind_of(event) == kind] for kind in set(OF_CATEGORY.values())}
    spanning = [event for kind in SPANNING for event in rows[kind] if event["ts"].ns]
    ends = [event["ts"].ns + event["dur"].ns for event in spanning]
    steps = {event["name"]: [] for event in rows["annotations"] if event["name"].startswith("ProfilerStep#")}
    for event in rows["annotations"]:
        if event["name"] in steps:
            steps[event["name"]].append(event["dur"].ns)
    lengths = sorted(sum(each) // len(each) for each in steps.values())
    return {
        "kinds": {kind: len(found) for kind, found in rows.items()} | {"arrows": 0},
        "span_ns": max(ends) - min(event["ts"].ns for event in spanning) if spanning else None,
        "steps": (len(steps), lengths[len(lengths) // 2] if lengths else None),
        "operators": longest(rows["operators"]),
        "kernels": longest(rows["kernels"]),
    }


@examples(60)
@given(builder=builders(), again=st.integers(1, 12), size=st.integers(300, 5000), requested=st.lists(st.booleans()))
def test_each_preview_holds_the_events_read_so_far_however_often_it_is_requested(builder, again, size, requested):
    builder.events *= again
    text, previews, turns = builder.text().encode(), [], iter([*requested, True] * 1000)

    def hear(progress):
        if progress.preview is not None and next(turns):
            previews.append(progress.preview())

    read_blocks([text[i : i + size] for i in range(0, len(text), size)], path="t.json", progress=hear)
    for preview in previews:
        assert {
            "kinds": preview.kinds,
            "span_ns": preview.span_ns,
            "steps": (preview.steps, preview.step_ns),
            "operators": [(one.name, one.count, one.total_ns) for one in preview.operators],
            "kernels": [(one.name, one.count, one.total_ns) for one in preview.kernels],
        } == slow_preview(builder.events[: preview.events])
