"""Tables on a terminal: what fits, what is left out, and that both are said."""

import re

import pytest

from kinetoscope_tb.cli.print_rows import print_table
from kinetoscope_tb.text_table import TextColumn

NAMES = ["aten::convolution_backward", "aten::mm", "autograd::engine::evaluate_function: ConvolutionBackward0"]


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Prints columns on a terminal of some width; gives the lines and the notes."""

    def print_on(width, columns, **options):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(columns, **options)
        shown = capsys.readouterr()
        return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in shown.out.splitlines()], shown.err

    return print_on


def number(header, *cells):
    return TextColumn(header, list(cells), is_number=True)


COLUMNS = [
    TextColumn("name", NAMES),
    number("calls", "6", "12", "6"),
    number("zero (ns)", "0", "0", "–"),
    number("host_self (ms)", "384.4", "1.5", "0.2"),
    number("host_total (ms)", "384.8", "1.5", "385.2"),
]


def test_numbers_come_first_and_the_name_has_what_is_left(terminal):
    lines, notes = terminal(80, COLUMNS)
    assert lines[0].split("  ")[-1] == "name"
    assert [re.split(r"\s{2,}", line.strip())[0] for line in lines] == ["calls", "6", "12", "6"]
    assert "aten::mm" in lines[2]
    assert lines[3].endswith("…")
    assert max(map(len, lines)) <= 80
    assert "Columns that don't fit: zero (ns). --columns chooses" in notes


@pytest.mark.parametrize("width", [60, 80, 100, 130, 140, 200])
def test_columns_of_zeros_go_before_times(terminal, width):
    lines, _ = terminal(width, COLUMNS)
    assert "host_self (ms)" in lines[0]
    assert "name" in lines[0]
    assert max(map(len, lines)) <= width


def test_short_names_stay_where_they_are_last(terminal):
    lines, notes = terminal(
        30,
        [number("base (ms)", "1"), number("new (ms)", "2"), number("delta (ms)", "1"), TextColumn("name", ["Other"])],
    )
    assert lines[1].split() == ["1", "2", "Other"]
    assert "delta (ms)" in notes


def test_a_terminal_shows_twenty_rows_unless_they_were_chosen(terminal):
    column = number("calls", *map(str, range(30)))
    lines, notes = terminal(80, [column])
    assert len(lines) == 21
    assert "10 more rows: --top 30" in notes
    lines, notes = terminal(80, [column], is_limited=True)
    assert (len(lines), notes) == (31, "")


def test_wide_letters_take_two_places(terminal):
    lines, _ = terminal(80, [TextColumn("name", ["畳み込み", "mm"]), number("calls", "1", "2")])
    assert lines == ["name      calls", "畳み込み      1", "mm            2"]


def test_markup_and_emoji_codes_are_text(terminal):
    lines, _ = terminal(80, [TextColumn("name", ["[red]x[/red] :smile:"]), number("calls", "1")])
    assert lines[1].startswith("[red]x[/red] :smile:")
