"""What holds of a view that says both directions: from a row to its events, and from an event to its row."""

from itertools import product

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.views import VIEWS

MOST_ROWS, MOST_EVENTS = 12, 6  # of a view, of a row
BOTH_WAYS = [view for view in VIEWS.values() if view.slices and not isinstance(view.slices.row_of, str)]


def assert_events_lead_back(view, trace):
    """Each event behind a row leads to a row that it is behind: to this one, unless it is behind several."""
    frame = view.run(trace)
    if view.slices.except_kind:
        frame = frame.filter(frame["kind"] != view.slices.except_kind)
    for key in _spread(_keys(view, frame), MOST_ROWS):
        for name, rows in view.events_of_row(trace, key).items():
            for row in _spread(rows[rows != NONE].tolist(), MOST_EVENTS):
                found = view.row_of_event(trace, name, row)
                assert found is not None, (view.id, key, name, row)
                if found != key:
                    assert row in view.events_of_row(trace, found)[name], (view.id, key, found, name, row)
                    assert found in _every_key(view, trace), (view.id, key, found)


def _spread(items, most):
    """At most so many of the items, the first and the last among them."""
    return [items[i * (len(items) - 1) // (most - 1)] for i in range(most)] if len(items) > most else items


def _keys(view, frame):
    return [dict(zip(view.table.key, values, strict=True)) for values in frame.select(view.table.key).rows()]


def _every_key(view, trace):
    """The keys of the rows for every combination of the view's choices."""
    choices = [[(one.name, value) for value in one.choices] for one in view.parameters if one.choices]
    return [key for chosen in product(*choices) for key in _keys(view, view.run(trace, **dict(chosen)))]
