"""One piece of the event array: what it held, what was mended, and what is lost at its end."""

import itertools
import json

from kinetoscope_tb.reader.scan.chunk import event_texts, scan_chunk, tokens_of
from kinetoscope_tb.reader.scan.columns import ARG_AT
from kinetoscope_tb.reader.scan.scanner import CODE, EVENTS

QUOTED = '{"ph": "X", "name": "a "b" c"}'
SOUND = '{"ph": "X", "name": "z"}'
STUCK = '{"ph": "X", "name" "e'


def of(*events, collect=event_texts):
    return scan_chunk(memoryview(",\n".join(events).encode()), 100, b'"ph"', collect, is_last=True)


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


ALIKE = (
    {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 12, "args": {"Input Dims": [[1, 2]], "device": 1}},
    {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 12, "tid": 1, "args": {"Input Dims": [[1, 2], []], "device": 12}},
    {"ph": "X", "cat": "cpu", "name": "mmm", "pid": 12, "tid": "1", "args": {"Input Dims": [[1, 2]], "devices": 3}},
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": 'm"m\\',
        "pid": 1.5,
        "tid": 1,
        "args": {"Input Dims": "[[1, 2]]", "stream": 7},
    },
    {"ph": "X", "name": 'm"m\\', "cat": "cpu_op", "pid": 1, "tid": -1, "args": {"device": {"device": 5}}, "device": 6},
    {"ph": "X", "name": "m", "cat": "cpu_op", "pid": 1, "tid": -1, "args": {"device": {}}, "device": {"device": 1}},
)


def tokens_and_numbers(out, text, _offset, _original):
    texts, n = tokens_of(out, text), int(out.state[EVENTS])
    codes = [[texts[code] if code >= 0 else None for code in column] for column in out.codes[:, :n].tolist()]
    counts = {arg.column: (at, int(out.arg_counts[at]), arg.kind) for at, arg in ARG_AT.items()}
    args = {
        name: [
            (row, texts[value] if kind == CODE else value)
            for row, value in zip(out.arg_rows[at, :count].tolist(), out.arg_values[at, :count].tolist(), strict=True)
        ]
        for name, (at, count, kind) in counts.items()
        if count
    }
    return codes, args


def test_keys_and_values_that_begin_as_earlier_ones_are_read_to_their_own_end():
    texts = [json.dumps(event) for event in ALIKE]
    one_by_one = [of(text, collect=tokens_and_numbers).parts[0] for text in texts]
    for order in itertools.permutations(range(len(texts))):
        (codes, args), *_ = of(*(texts[nth] for nth in order), collect=tokens_and_numbers).parts
        assert codes == [[one_by_one[nth][0][column][0] for nth in order] for column in range(len(codes))]
        for name, values in args.items():
            alone = [(row, value) for row, nth in enumerate(order) for _, value in one_by_one[nth][1].get(name, ())]
            assert values == alone, name
