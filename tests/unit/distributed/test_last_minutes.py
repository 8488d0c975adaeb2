"""The last minutes of ranks as rows."""

from kinetoscope.output.ring import LastMinutes
from kinetoscope_tb.distributed.last_minutes import MinutesRow, minutes_rows
from kinetoscope_tb.distributed.why_text import minutes_columns

SECOND = 1_000_000_000


def test_a_row_has_the_last_steps_and_the_last_samples():
    steps = tuple((number, 100 * number, 100 * number + 10 + number) for number in range(7))
    memory = ((0, 500, 90), (2 * SECOND, 800, 40))
    processor = ((0, 0, 0), (2 * SECOND, 3 * SECOND, 250_000))
    assert minutes_rows({1: LastMinutes(steps, memory, processor, usual_ns=13), 0: LastMinutes((), memory)}) == [
        MinutesRow(1, 6, 616, 13, (12, 13, 14, 15, 16), 800, 300, 40, 1.5, 0.25)
    ]


def test_a_row_has_the_state_of_the_device_and_what_disks_and_network_did():
    samples = {
        "memory": ((0, 1, 1), (2 * SECOND, 1, 1)),
        "allocator": ((SECOND, 700, 900),),
        "power": ((SECOND, 312_500, 61_000),),
        "clock": ((SECOND, 1410, 1),),
        "disk": ((0, 5, 5), (2 * SECOND, 5, 4005)),
        "network": ((0, 9, 9), (2 * SECOND, 0, 0)),
        "markers": ((5, 0, "load"), (7, 2 * SECOND, "evaluate"), (8, 2 * SECOND, "\x1b[2J")),
    }
    (row,) = minutes_rows({0: LastMinutes(((0, 5, 3),), **samples)})
    assert (row.device_bytes, row.power_w, row.temperature_c, row.clock_mhz, row.is_throttled) == (
        900,
        312.5,
        61,
        1410,
        True,
    )
    assert (row.disk_bytes_per_s, row.network_bytes_per_s) == (2000, None)
    assert row.markers == ("evaluate", "\x1b[2J")
    cells = {column.header: column.cells for column in minutes_columns([row])}
    assert cells["clock"] == ["1410 MHz (throttled)"]
    assert (cells["power"], cells["temperature"], cells["disk"]) == (["312 W"], ["61 °C"], ["1.95 KiB/s"])
    assert "\x1b" not in cells["markers"][0]
    assert "network" not in cells


def test_without_samples_these_values_are_missing():
    (row,) = minutes_rows({0: LastMinutes(((0, 5, 3),))})
    assert row == MinutesRow(0, 0, 3, 0, (0,))
