"""One piece of the event array: what it held, what was mended, and what is lost at its end."""

from kinetoscope_tb.reader.scan.chunk import event_texts, scan_chunk

QUOTED = '{"ph": "X", "name": "a "b" c"}'
SOUND = '{"ph": "X", "name": "z"}'
STUCK = '{"ph": "X", "name" "e'


def of(*events):
    return scan_chunk(memoryview(",\n".join(events).encode()), 100, b'"ph"', event_texts, is_last=True)


def counts(piece):
    return {rule: (noted.count, noted.first) for rule, noted in piece.tally.noted.items()}


def test_damage_at_the_end_is_counted_also_behind_a_place_that_was_mended():
    at = 100 + len(SOUND) + 2
    assert counts(of(SOUND, STUCK)) == {"damaged_events": (1, at)}
    piece = of(SOUND, QUOTED, SOUND, STUCK)
    assert counts(piece) == {
        "unescaped_quote": (1, at),
        "damaged_events": (1, at + len(QUOTED) + 2 + len(SOUND) + 2),
    }
    assert piece.used == len(f"{SOUND},\n{QUOTED},\n{SOUND},\n")
