"""The page draws views as the catalogue describes them: where it knows one by name, or a column, there is a reason."""

import re
from pathlib import Path

from kinetoscope_tb.pictures import PartBars
from kinetoscope_tb.views import EVERY_VIEW

SOURCES = Path(__file__).parents[2] / "frontend" / "src"
OVERVIEW = "the overview composes its page of these tables, each drawn in its own way"
AREA = "tables of a marked area, which are no views; they have such columns too"
BY_NAME = {
    "views/overview": (
        "activity_strip advice environment gpus health kernels lanes memory_devices operators overview run_advice "
        "snapshot_alive snapshot_summary steps what_if",
        OVERVIEW,
    ),
    "index.tsx": ("overview", "the overview has a page of its own"),
    "views/row_facts.tsx": ("advice", "a row is part of a finding, which the advice shows"),
    "views/parameters.tsx": ("steps", "phases to choose from are those of the steps"),
    "timeline/panels/gap_list.tsx": ("idle_culprits", "the panel of idle gaps shows what the host did in them"),
    "timeline/state/clocks.ts": ("clocks", "timelines of several ranks are drawn on one clock"),
}
"""Views that a file, or a folder, knows by their ids, and why."""
COLUMNS_BY_NAME = {
    "views/overview": ("*", OVERVIEW),
    "api/row_slices.ts": ("kind", "`except_kind` of the catalogue is a value of that column"),
    "charts/curve_chart.tsx": ("from_ns", "a parameter: a curve with one can be narrowed to a time"),
    "charts/curve_lines.ts": ("device", "its number is headed by what its vendor calls it: GPU 0, NPU 0"),
    "charts/flame_graph.tsx": ("file kind line", "what a box of a flame graph is: rows of any tree may have them"),
    "charts/run_chart.tsx": ("step_ns", "of the answer about many runs, which is no view"),
    "charts/idle_bars.tsx": ("communication_ns device exposed_communication_ns step", "the sentence above such bars"),
    "charts/step_columns.tsx": ("step", "the table of steps"),
    "charts/steps_chart.tsx": ("is_complete part phase step total_ns", "the same"),
    "charts/usual_step.ts": ("phase step total_ns", "the same"),
    "charts/part_bars.tsx": ("part", "the view that a picture names as its what-if has a row for each part"),
    "shell/sidebar.tsx": ("is_relative", "an amount that is above an unknown one has a plus"),
    "table/columns.ts": ("device thread", "rows of several devices or threads don't add up"),
    "timeline/model/area_comparison.ts": ("calls category name", AREA),
    "timeline/model/area_sides.ts": ("name", AREA),
    "timeline/panels/area_counters.tsx": ("counter", AREA),
    "timeline/panels/area_rows.tsx": ("category name", AREA),
    "timeline/panels/gap_list.tsx": ("start_ns total_ns", "the panel of idle gaps"),
    "timeline/state/idle_gaps.ts": ("start_ns", "the panel of idle gaps"),
    "views/view_page.tsx": (
        "consequence rule",
        "what the sentence above a page's tabs says: a run's advice, and the worst finding",
    ),
    "views/step_difference.tsx": ("kind", "of the answer about two steps, which is no view"),
    "views/parameters.tsx": ("device phase", "parameters of a whole page"),
}
"""Columns that a file, or a folder, knows by their names, and why; `*`: any."""

VIEW = re.compile(
    r'(?:openView|useAnswer|viewEntry|cachedTable|slicesIn|useViewComparison)\("(\w+)"'
    r'|\bview(?:=|: )\{?"(\w+)"|\bid === "(\w+)"|^(?:export )?const [A-Z_]+ = "(\w+)"',
    re.MULTILINE,
)
COLUMN = re.compile(
    r'\bdata\.(\w+)|\bdata\["(\w+)"\]|\bname === "(\w+)"|\brow\("(\w+)"\)'
    r'|\b(?:valueOf|valuesOf|number|isShared|includes|has)\((?:\w+, )?"(\w+)"'
)


def by_hand(pattern, names):
    """Which of the names each file or listed folder of the page's source has in code of this form."""
    found = {}
    for path in sorted(SOURCES.rglob("*.ts*")):
        place = path.relative_to(SOURCES).as_posix()
        place = "views/overview" if place.startswith("views/overview/") else place
        hits = {name for groups in pattern.findall(path.read_text()) for name in groups} & names
        if hits:
            found[place] = found.get(place, set()) | hits
    return found


def test_the_page_knows_views_by_name_only_where_there_is_a_reason():
    assert by_hand(VIEW, set(EVERY_VIEW)) == {place: set(names.split()) for place, (names, _) in BY_NAME.items()}


def test_the_page_knows_columns_by_name_only_where_there_is_a_reason():
    found = by_hand(COLUMN, {column.name for view in EVERY_VIEW.values() for column in view.table.columns})
    listed = {
        place: found.get(place) if names == "*" else set(names.split()) for place, (names, _) in COLUMNS_BY_NAME.items()
    }
    assert found == listed


def test_a_table_names_parts_as_the_bars_that_show_them():
    tables = [view.table for view in EVERY_VIEW.values()]
    parts = [(table, table.picture.part) for table in tables if isinstance(table.picture, PartBars)]
    assert parts
    for table, part in parts:
        (column,) = [column for column in table.columns if column.name == part]
        assert column.shown_as == "time part"


def test_a_title_belongs_to_a_column_in_every_view():
    """The page calls columns of one name the same, whichever view they are in."""
    columns = {(column.name, column.title) for view in EVERY_VIEW.values() for column in view.table.columns}
    assert any(title for _, title in columns)
    assert len(columns) == len({name for name, _ in columns})
