"""When nobody looks at a page any more."""

import pytest

from kinetoscope_tb.web.standalone.presence import Presence


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def presence(clock):
    return Presence(closed_s=10, silent_s=1000, clock=clock)


@pytest.fixture
def page(presence):
    number = presence.new_page()
    presence.note(number, 1, is_open=True)
    return number


def ends_at(presence, clock):
    """The second at which it is over, if nothing more is heard."""
    before = clock.now
    while not presence.is_over():
        clock.now += 1
    ends, clock.now = clock.now, before
    return ends


def test_before_the_first_page_it_waits_long(presence, clock):
    assert ends_at(presence, clock) == 1000


def test_a_page_that_never_begins_to_run_is_not_waited_for_long(presence, clock):
    clock.now = 50
    presence.new_page()
    assert ends_at(presence, clock) == 110


def test_a_page_that_was_closed_ends_it_soon(presence, page, clock):
    clock.now = 50
    presence.note(page, 2, is_open=False)
    assert ends_at(presence, clock) == 60


def test_a_page_that_is_silent_ends_it_late(presence, page, clock):
    clock.now = 50
    presence.note(page, 2, is_open=True)
    assert ends_at(presence, clock) == 1050


def test_a_report_that_was_overtaken_says_nothing(presence, page, clock):
    presence.note(page, 3, is_open=False)
    presence.note(page, 2, is_open=True)
    assert ends_at(presence, clock) == 10


def test_a_page_may_be_shown_again_after_it_was_closed(presence, page, clock):
    presence.note(page, 2, is_open=False)
    clock.now = 9
    presence.note(page, 3, is_open=True)
    assert ends_at(presence, clock) == 1009


def test_a_tab_that_is_closed_leaves_another_open(presence, page, clock):
    other = presence.new_page()
    presence.note(other, 1, is_open=True)
    presence.note(page, 2, is_open=False)
    assert ends_at(presence, clock) == 1000
    clock.now = 20
    presence.note(other, 2, is_open=False)
    assert ends_at(presence, clock) == 30


def test_a_reload_that_arrives_before_the_report_of_closing_goes_on(presence, page, clock):
    again = presence.new_page()
    presence.note(page, 2, is_open=False)
    presence.note(again, 1, is_open=True)
    assert ends_at(presence, clock) == 1000


def test_a_number_that_no_page_has_changes_nothing(presence, page, clock):
    presence.note(page, 2, is_open=False)
    presence.note(page + 1, 1, is_open=True)
    presence.note(-1, -1, is_open=True)
    assert ends_at(presence, clock) == 10
