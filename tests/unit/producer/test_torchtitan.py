"""torchtitan's traces get a second name; its training never hears of trouble."""

import pytest

from kinetoscope.integrations.torchtitan import publisher, target_of


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/out/profiling/traces/iteration_20/rank3_trace.json.gz", "rank3.20.pt.trace.json.gz"),
        ("profile_trace/iteration_7/rank0_trace.json", "rank0.7.pt.trace.json"),
        ("/out/iteration_20/replica_1/rank3_trace.json.gz", "replica_1/rank3.20.pt.trace.json.gz"),
        ("/out/iteration_20/rank3_memory.pickle", None),
        ("/out/rank3_trace.json", None),
    ],
)
def test_the_path_says_rank_and_step(tmp_path, path, target):
    assert target_of(path, tmp_path) == (None if target is None else tmp_path / target)


def test_a_trace_gets_a_second_name_again_and_again(tmp_path):
    source = tmp_path / "out/iteration_20/rank3_trace.json.gz"
    source.parent.mkdir(parents=True)
    publish = publisher(tmp_path / "runs/llama")
    for content in (b"first", b"second"):
        source.unlink(missing_ok=True)
        source.write_bytes(content)
        publish(str(source))
        assert (tmp_path / "runs/llama/rank3.20.pt.trace.json.gz").read_bytes() == content
    assert [path.name for path in (tmp_path / "runs/llama").iterdir()] == ["rank3.20.pt.trace.json.gz"]


def test_what_can_t_be_published_is_logged_alone(tmp_path, caplog):
    (tmp_path / "file").touch()
    publish = publisher(tmp_path / "file/run")
    publish("trace.json")
    publish(str(tmp_path / "iteration_1/rank0_trace.json"))
    assert "left alone" in caplog.text
    assert "wasn't published" in caplog.text
