"""When nobody looks at the page any more."""

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
    return Presence(closed_s=10, silent_s=100, clock=clock)


def test_before_the_first_page_it_waits_long(presence, clock):
    clock.now = 99
    assert not presence.is_over()
    clock.now = 100
    assert presence.is_over()


def test_a_page_that_was_closed_ends_it_soon(presence, clock):
    presence.note_request()
    clock.now = 50
    presence.note_closing()
    clock.now = 59
    assert not presence.is_over()
    clock.now = 60
    assert presence.is_over()


def test_another_page_or_a_reload_goes_on(presence, clock):
    presence.note_closing()
    clock.now = 9
    presence.note_request()
    clock.now = 108
    assert not presence.is_over()
