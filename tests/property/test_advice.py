"""What holds of advice about every trace."""

from hypothesis import given

from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.views import VIEWS
from support.examples import examples
from support.strategies import builders

_LAST = ("nothing_to_fix", "nothing_timed", "device_not_recorded", "graph_capture")


@examples(60)
@given(builders())
def test_what_holds_of_the_advice_about_any_trace(builder):
    trace = builder.build()
    table = VIEWS["advice"].run(trace)
    assert_no_saving_exceeds_the_step_and_what_the_host_is_blamed_for_is_idle_time(table, Facts(trace))
    for text in table.select("title", "evidence", "action").rows():  # whole sentences
        assert all(part and part.endswith(".") and "nan" not in part for part in text)


def assert_no_saving_exceeds_the_step_and_what_the_host_is_blamed_for_is_idle_time(table, facts):
    assert table.is_empty() or table["rule"][-1] in _LAST
    assert table["rule"].is_unique().all()
    savings = table["saving_ns"].drop_nulls().to_list()
    assert all(0 < saving <= facts.step_ns for saving in savings)
    assert savings == sorted(savings, reverse=True)
    assert all(0 < share <= 1 for share in table["saving_frac"].drop_nulls())
    if facts.has_device:
        late = facts.late
        blamed = late.loading + late.allocating + late.synchronizing + late.optimizer + late.host
        idle = facts.exposure_parts["idle"]
        assert (blamed <= idle)[facts.is_counted].all()
        parts = (late.loading, late.allocating, late.synchronizing, late.optimizer, late.host)
        assert min(int(part.min()) for part in parts) >= 0
