"""How tests read what their processes say."""

from support.processes import Started, ended
from support.waiting import wait_for

TALKS = "import sys; from pathlib import Path; sys.stderr.write('a line\\n' * 100_000); Path(sys.argv[1]).touch()"


def test_a_process_that_says_more_than_a_pipe_holds_does_not_wait_for_its_reader(tmp_path):
    process = Started("-c", TALKS, str(tmp_path / "said"))
    wait_for((tmp_path / "said").exists)
    assert ended(process) == (0, "", "a line\n" * 100_000)
