import json
import pickle
from types import SimpleNamespace

from kinetoscope.signals.flight_recorder import MOST_BYTES, flight_recorder_dump, group_ranks

DUMP = {"version": "2.4", "entries": [{"record_id": 0, "process_group": ("0", "default_pg")}]}


def test_json_of_torch_is_taken_as_it_is():
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        module = SimpleNamespace(**{name: lambda includeCollectives, onlyActive: b'{"version":"2.10"}\n'})  # noqa: N803
        assert flight_recorder_dump(module) == b'{"version":"2.10"}'


def test_versions_without_json_have_pickles():
    def dump(includeCollectives, includeStackTraces, onlyActive):  # noqa: N803
        return pickle.dumps(DUMP)

    data = flight_recorder_dump(SimpleNamespace(_dump_nccl_trace=dump))
    assert json.loads(data)["entries"] == [{"record_id": 0, "process_group": ["0", "default_pg"]}]


def test_of_a_very_large_ring_only_open_operations_stay():
    def dump(includeCollectives, onlyActive):  # noqa: N803
        return b'{"entries":[]}' if onlyActive else b"{" + b" " * MOST_BYTES + b"}"

    assert flight_recorder_dump(SimpleNamespace(_dump_fr_trace_json=dump)) == b'{"entries":[]}'


def test_without_a_recorder_the_dump_is_empty():
    assert flight_recorder_dump(SimpleNamespace()) == b"{}"


def test_the_ranks_of_groups_are_in_the_order_of_the_group():
    world = SimpleNamespace(
        pg_names={"a": "0", "b": "1"}, pg_group_ranks={"a": {0: 0, 1: 1}, "b": {4: 1, 6: 0}, "c": {}}
    )
    assert group_ranks(SimpleNamespace(_world=world)) == {"0": [0, 1], "1": [6, 4]}
    assert group_ranks(SimpleNamespace()) == {}
