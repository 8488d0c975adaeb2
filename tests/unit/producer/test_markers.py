import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope.markers import MarkerNames, plain_name


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
        recorded = names.recorded(label)
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
