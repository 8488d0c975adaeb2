"""Commands in this process: how they end, and what they say."""

from __future__ import annotations

import pytest

from kinetoscope_tb.cli import main


def command_says(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says: it ends with 0, 1 or 2 and words that can't steer a terminal, and has no bug."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr()
    said = shown.out + shown.err
    assert ended.value.code in (0, 1, 2), said
    assert "Traceback" not in said
    assert "bug in Kinetoscope" not in said
    assert "\x1b" not in said
    said.encode()
    return said
