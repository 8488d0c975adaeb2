"""No secret of a program's arguments or URLs is in a run's metadata."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope import Tracer
from kinetoscope.output.redaction import REDACTED, redacted_arguments, redacted_text, redacted_urls

S = "hunter2!x"


@pytest.mark.parametrize(
    "given_arguments",
    [
        ["--token", S],
        [f"--token={S}"],
        ["--hf_token", S, "--lr", "1"],
        [f"--wandb-api-key={S}"],
        ["-password", S],
        ["--db_password", f"-{S}"],
        ["--api-keys", S, S, "--lr", "1"],
        [f"trainer.logger.api_key={S}"],
        [f"+x.token={S}"],
        [f"++aws.secret_access_key={S} with, more"],
        [f"WANDB_API_KEY={S}"],
        ["--PASSWORD", S],
        [f"--logger={{api_key:{S},project:x}}"],
        [f'{{"api_key": "{S}", "lr": 1}}'],
        [f"logger={{'secret': '{S}'}}"],
        ["-c", f"export WANDB_API_KEY={S}; train"],
        [f"--init=https://user:{S}@host/path"],
        [f"https://user:p@{S}@host/path"],
        [f"mlflow://:{S}@host:80"],
        [f"https://{S}@host/path"],
        [f"postgres user:{S}@host"],
        [f"https://host/path?X-Amz-Signature={S}&x=1"],
        [f"https://host/path?sig={S}"],
        ["--header", f"Authorization: Bearer {S}"],
        [f"--header=Authorization: Basic {S}"],
    ],
    ids=" ".join,
)
def test_no_secret_is_shown(given_arguments):
    shown = redacted_arguments(["train.py", *given_arguments])
    assert not any(S in argument for argument in shown), shown
    assert any(REDACTED in argument for argument in shown)
    assert shown[0] == "train.py"
    assert shown[-2:] == given_arguments[-2:] or "--lr" not in given_arguments


@pytest.mark.parametrize(
    "text", ["hf_" + "a" * 30, "sk-" + "b" * 40, "ghp_" + "c" * 36, "AKIA" + "D" * 16, "eyJhbGciOi.eyJzdWIi.x"]
)
def test_what_is_a_secret_by_its_form_is_none_of_anybody_s_business(text):
    assert redacted_arguments(["--x", text, f"a={text}"]) == ["--x", REDACTED, f"a={REDACTED}"]


@pytest.mark.parametrize(
    "argument",
    ["--lr=0.1", "--tokenizer=gpt2", "data/train.parquet", "s3://bucket/runs", "https://host:80/x?a=1#b", "model.layers=12", "-v", "",
     "--run=2026-11-22T10:00:00", "user@host", "git@github.com:org/repo", "C:\\data", "a=b=c"],
)  # fmt: skip
def test_what_is_no_secret_stays(argument):
    assert redacted_arguments(["train.py", argument, "x"]) == ["train.py", argument, "x"]


def test_a_switch_that_sounds_like_a_secret_hides_no_option():
    assert redacted_arguments(["--use-auth-token", "--lr", "0.1", "a.yaml"]) == [
        "--use-auth-token",
        "--lr",
        "0.1",
        "a.yaml",
    ]


@given(st.lists(st.text()))
def test_any_arguments_can_be_shown(arguments):
    shown = redacted_arguments(arguments)
    assert len(shown) == len(arguments)
    assert redacted_arguments(shown) == shown


@pytest.mark.parametrize("part", ["key", "a", "://", "?key", "x:", "'", "sk-a", "eyJaaaaa.", "bearer "])
def test_a_long_text_takes_no_longer_than_many_short_ones(part):
    """Which would be minutes, if an expression went over it from each of its places."""
    assert len(redacted_text(part * 50_000)) > 0


@given(st.text())
def test_any_text_can_be_shown(text):
    assert redacted_text(redacted_text(text)) == redacted_text(text)


def test_urls_are_shown_without_their_users_at_any_depth():
    status = {
        "upload": {"url": f"https://me:{S}@host/x", "tries": 2},
        "problem": [f"no s3://k:{S}@bucket"],
        "none": None,
    }
    assert redacted_urls(status) == {
        "upload": {"url": "https://***@host/x", "tries": 2},
        "problem": ["no s3://***@bucket"],
        "none": None,
    }


def test_neither_run_json_nor_a_trace_holds_a_secret(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", f"remote.password={S}", "--api-key", S, "--lr", "1"])
    remote = f"memory://user:{S}@host/runs"
    with Tracer(tmp_path, run="run", remote=remote):
        pass
    status = json.loads((tmp_path / "run" / "run.json").read_text())
    assert status["argv"] == ["train.py", f"remote.password={REDACTED}", "--api-key", REDACTED, "--lr", "1"]
    ((window,),) = [window["ranks"].values() for window in status["windows"]]
    assert window["upload"]["url"].startswith("memory://***@host/runs/run/rank0.")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 2
    assert [path for path in written if S.encode() in path.read_bytes()] == []
