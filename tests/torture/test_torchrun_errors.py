"""Error files of torchrun: what `why` says of a job without a Tracer."""

import json
from pathlib import Path

from support.processes import Started, ended
from torture.truth import run_command

JOBS = Path(__file__).with_name("recorded_errors.py")


def logs_of(folder, *arguments):
    """The folder of torchrun's logs after a job of two ranks has failed."""
    meeting, logs = folder / "meeting", folder / "logs"
    meeting.mkdir()
    torchrun = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=0", f"--log-dir={logs}")
    status, _, words = ended(Started(*torchrun, str(JOBS), str(meeting), *arguments))
    assert status == 1
    assert "KeyError: 'label'" in words
    return logs


def test_a_program_with_record_says_who_failed_and_where(tmp_path):
    logs = logs_of(tmp_path, "record")
    result = run_command("why", logs, "--format", "json")
    answer = json.loads(result.out)
    assert (result.status, answer["kind"], answer["culprits"]) == (2, "exception", [1])
    assert answer["sentence"].startswith("Rank 1 raised KeyError: 'label', in load_batch (recorded_errors.py:")
    assert answer["evidence"] == [
        f"It was in load_batch ({JOBS}:21), called from main ({JOBS}:29).",
        "The first exception behind it is ValueError: invalid literal for int() with base 10: 'batch 5'.",
    ]
    assert [row["end"] for row in answer["ranks"]] == ["left nothing", "raised KeyError"]


def test_a_program_without_record_leaves_no_such_file(tmp_path):
    result = run_command("why", logs_of(tmp_path))
    assert (result.status, result.out) == (1, "")
    assert "no error.json of torchrun, which ranks write whose main function has @record" in result.err
