import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope.profiling import profiler_ranges
from kinetoscope.profiling.profiler_ranges import MarkerNames, Ranges, itt_mark, plain_name


@given(st.text())
def test_a_recorded_name_is_harmless_in_json(text):
    name = plain_name(text)
    assert name
    assert name.isascii()
    assert name.isprintable()
    assert not set(name) & {'"', "\\"}
    assert not name.startswith("ProfilerStep")


@given(st.lists(st.text()))
def test_each_marker_has_its_own_recorded_name(labels):
    names = MarkerNames()
    for label in [*labels, *labels]:
        recorded = names.recorded_name(label)
        assert names.labels[recorded]["label"] == label
    assert len(names.labels) == len(set(labels))


@pytest.mark.parametrize(
    ("label", "recorded"),
    [
        ("forward", "forward"),
        ("épreuve", "epreuve"),
        ('say "x"', "say 'x'"),
        ("a\\b\tc\nd", "a/b c d"),
        ("loss → 日本", "loss ? ??"),
        ("", "marker"),
        ("ProfilerStep#7", "marker ProfilerStep#7"),
    ],
)
def test_names_stay_as_readable_as_they_can(label, recorded):
    assert plain_name(label) == recorded


class Itt:
    """The ITT calls of one thread, as a tool gets them: ranges end in the reverse order of their begin."""

    def __init__(self):
        self.open, self.calls = [], []

    def range_push(self, name):
        self.open.append(name)
        self.calls.append(("push", name))

    def range_pop(self):
        self.calls.append(("pop", self.open.pop()))

    def mark(self, name):
        self.calls.append(("mark", name))


def test_recorded_ranges_are_nested_itt_ranges(monkeypatch):
    itt = Itt()
    monkeypatch.setattr(profiler_ranges, "itt", itt)
    monkeypatch.setattr(profiler_ranges, "_HAS_ITT", True)
    ranges = Ranges()
    unrecorded = ranges.begin("before")
    ranges.end(unrecorded)
    ranges.is_recording = True
    ranges.begin_step(3)
    outer, inner = ranges.begin("épreuve"), ranges.begin("inner")
    ranges.end(outer)
    itt_mark('a "checkpoint"')
    ranges.end_step()
    ranges.end(inner)
    assert itt.calls == [
        ("push", "ProfilerStep#3"),
        ("push", "epreuve"),
        ("push", "inner"),
        ("pop", "inner"),
        ("pop", "epreuve"),
        ("push", "inner"),
        ("mark", "a 'checkpoint'"),
        ("pop", "inner"),
        ("pop", "ProfilerStep#3"),
    ]


def test_a_torch_without_itt_gets_no_calls(monkeypatch):
    itt = Itt()
    monkeypatch.setattr(profiler_ranges, "itt", itt)
    monkeypatch.setattr(profiler_ranges, "_HAS_ITT", False)
    ranges = Ranges()
    ranges.is_recording = True
    ranges.begin_step(0)
    ranges.end_step()
    itt_mark("now")
    assert itt.calls == []
