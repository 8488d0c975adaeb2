"""What ran in an area of the timeline."""

from kinetoscope_tb.timeline import timeline
from kinetoscope_tb.timeline.search.area import area
from support.build import TraceBuilder, same


def table(built, from_ns, to_ns, *parts):
    made = timeline(built.build())
    tracks = [place for place, track in enumerate(made.tracks) if not parts or track.part in parts]
    return area(made, from_ns, to_ns, tracks)


def test_amounts_are_cut_to_the_area_and_durations_are_whole():
    built = TraceBuilder().op("outer", 0, 100).op("inner", 10, 20).op("inner", 60, 30).op("later", 200, 10)
    same(
        table(built, 20, 80),
        """
        name   category  calls  total_ns  self_ns  union_ns  mean_ns  min_ns  p50_ns  p95_ns  max_ns
        outer  Operator  1      60        30       60        100      100     100     100     100
        inner  Operator  2      30        30       30        25       20      20      30      30
        """,
    )


def test_what_overlaps_on_several_tracks_is_counted_once_in_the_union():
    built = TraceBuilder().kernel("k", 0, 50).kernel("k", 20, 60, stream=9).memcpy(90, 10, name="copy")
    same(
        table(built, 0, 100, "work"),
        """
        name  category  calls  total_ns  self_ns  union_ns
        k     Kernel    2      110       110      80
        copy  Memcpy    1      10        10       10
        """,
    )


def test_the_area_ends_before_its_end_and_instants_lie_in_it():
    built = TraceBuilder().event("user", "mark", 50, None, ph="i").op("a", 0, 20).op("b", 50, 20)
    assert table(built, 20, 50).height == 0
    assert sorted(table(built, 50, 51)["name"]) == ["b", "mark"]
    assert table(built, 10, 10).select("name", "total_ns").rows() == [("a", 0)]  # what is open then


def test_only_the_chosen_tracks_count():
    built = TraceBuilder().op("a", 0, 20).kernel("k", 0, 20)
    assert table(built, 0, 100, "work")["name"].to_list() == ["k"]
    assert area(timeline(built.build()), 0, 100, []).height == 0
