import pytest

from kinetoscope.job.rank_info import RankInfo
from kinetoscope.output.name_template import (
    TRACE,
    VARIABLES,
    escape_unknown,
    format_name,
    gz_name,
    rank_values,
    trace_file,
    unknown_variables,
    variables,
)
from kinetoscope.progress import Progress

VALUES = {"run_name": "run", "rank": 3, "batch": 42, "total_wct": 1.5, "local_rank": None}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (TRACE, "rank3.42.pt.trace.json.gz"),
        ("{run_name}/torch_traces", "run/torch_traces"),
        ("{batch:06d}-{total_wct:.2f}-{rank!s:>3}", "000042-1.50-  3"),
        ("{unknown}.{local_rank:02d}.{x!r}", "{unknown}.{local_rank:02d}.{x!r}"),
        ("{run_name:d}", "{run_name:d}"),
        ("{{rank}} 100 %", "{rank} 100 %"),
        ("{rank.real}{rank[0]}{}", "{rank.real}{rank[0]}{}"),
        ("", ""),
    ],
)
def test_known_variables_are_put_in_and_all_else_stays(template, name):
    assert format_name(template, VALUES) == name


def test_gz_is_appended_once():
    assert gz_name("a.json") == gz_name(gz_name("a.json")) == "a.json.gz"


def test_variables_are_listed_and_unmatched_braces_refused():
    assert variables(TRACE) == {"rank", "batch"}
    with pytest.raises(ValueError, match=r"brace|expected"):
        variables("rank{rank")


def test_the_variables_of_a_place_are_composer_s():
    values = rank_values(RankInfo(5, 8, 1, 2), "run", 4)
    assert (
        format_name("{run_name} {rank} {local_rank} {world_size} {local_world_size} {node_rank}", values)
        == "run 5 1 8 4 2"
    )


def test_what_no_launcher_says_is_the_place_of_a_process_alone():
    values = rank_values(RankInfo(), "run")
    assert format_name("{local_rank} {local_world_size} {node_rank}", values) == "0 1 0"


def test_each_variable_has_a_value():
    values = {**rank_values(RankInfo(), "run"), **Progress().to_json()}
    assert set(values) == set(VARIABLES)
    assert unknown_variables("".join(f"{{{name}}}" for name in VARIABLES)) == ""


@pytest.mark.parametrize(
    "template", ["{rank:03d}{rnk!r:>3}", "{{a}}{batch!s}{}", "{rank.real}{0}", TRACE, "{{{rank}}}"]
)
def test_unknown_variables_are_escaped_and_known_ones_stay(template):
    assert unknown_variables(escape_unknown(template)) == ""
    assert format_name(escape_unknown(template), VALUES) == format_name(template, VALUES)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mytrace", "mytrace.pt.trace.json.gz"),
        ("step.{batch}", "step.{batch}.pt.trace.json.gz"),
        ("a.json", "a.json"),
        ("a.gz", "a.gz"),
    ],
)
def test_a_name_without_an_ending_gets_one(name, file):
    assert trace_file(name) == file
