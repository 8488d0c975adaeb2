"""The name of the run that all processes of a job record into."""

from __future__ import annotations

import itertools
import json
import os
import time
import uuid
from concurrent.futures import Future, InvalidStateError, TimeoutError  # noqa: A004  the built-in one since 3.11
from contextlib import suppress
from dataclasses import asdict, replace
from threading import Thread
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..naming import folder_name
from .cluster import slurm_job
from .job_store import JobStore, process_start_ns
from .rank_info import current_rank_info
from .run_attempts import Attempt, claim_folder, join_attempt, launcher_facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_count = itertools.count()


def run_name_from(environ: Mapping[str, str]) -> str | None:
    """Return the run's name from the environment; None if it has none.

    torchrun names every run `none` by default.
    """
    for name in ("RUN_NAME", "PT_PROFILER_JOB_NAME"):
        if environ.get(name):
            return folder_name(environ[name])
    elastic = environ.get("TORCHELASTIC_RUN_ID", "")
    if elastic and elastic != "none":
        return folder_name(elastic)
    job, number, ray_job = environ.get("SLURM_JOB_NAME"), slurm_job(environ), environ.get("RAY_JOB_ID")
    if job and number:
        return folder_name(f"{job}-{number}")
    return folder_name(f"ray-{ray_job}") if ray_job else None


def validate_run_name(name: str) -> str:
    """Check the program's name for the run: a visible folder below the logdir, possibly several levels deep.

    Raises:
        UsageError: It is invalid, or leads outside the logdir.
    """
    parts = name.split("/")
    if any(part.startswith(".") or not part or "\0" in part for part in parts):
        raise UsageError(
            f"run={name!r}: a run's name must be a visible folder below the logdir, such as 'resnet/lr-0.1'."
        )
    return name


class Run:
    """The name of the run, resolved at the latest when the first trace is saved.

    If neither the program nor the environment names the run, its name is the time of the first process that resolves
    it. The processes agree on it through torch.distributed's store, or the one of torchrun's agent, without waiting for
    each other; a process that reaches neither joins the others through the logdir. If the logdir has an earlier attempt
    of that name, a number is appended (`run_attempts`).

    Args:
        name: The program's name for it.
        logdir: The folder of all runs.
        overwrite: Whether it claims the folder of that name, whatever it has.
    """

    def __init__(self, name: str | None, logdir: Path, *, overwrite: bool = False) -> None:
        self._requested_name = run_name_from(os.environ) if name is None else validate_run_name(name)
        self.logdir, self._overwrite = logdir, overwrite
        self._future: Future[str] | None = None
        # Each process of a job creates its recorders in the same order: the n-th of each belong together.
        self._number = next(_count)
        self._started = time.strftime("%Y%m%d-%H%M%S")
        self.token = ""
        """The attempt's token, common to its processes; empty before the name is resolved."""
        self.problem = ""
        """Why nothing can be written into the run's folder; empty if that isn't known."""
        self.is_certain = True
        """Whether all processes with the token certainly belong to one job."""

    @property
    def name(self) -> str:
        """The name; waits until it is resolved."""
        return self.begin().result()

    def begin(self) -> Future[str]:
        """Begin to resolve the name, unless that has begun; return the future name."""
        if self._future is None:
            self._future = Future()
            thread = Thread(target=self._resolve, args=(self._future,), name="kinetoscope-run", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads, or the interpreter is ending
                self._resolve(self._future)
        return self._future

    @property
    def has_begun(self) -> bool:
        """Whether it is being resolved, or is resolved."""
        return self._future is not None

    def is_resolved(self, timeout_s: float = 0.0) -> bool:
        """Whether the name is resolved, within `timeout_s`.

        Raises:
            Exception: What made it fail; the next call tries again.
        """
        future = self.begin()
        try:
            future.result(timeout_s)
        except TimeoutError:
            return False
        except Exception:
            self._future = None
            raise
        return True

    def give_up(self) -> None:
        """Take the name as it is, without the number of the attempt: the logdir doesn't answer."""
        future = self.begin()
        with suppress(InvalidStateError):  # resolved just now
            future.set_result(self._requested_name or self._started)

    def _resolve(self, future: Future[str]) -> None:
        """Resolve the name; the target of the thread."""
        try:
            name = self._claim()
        except Exception as error:  # noqa: BLE001  torch's store raises many kinds; `is_resolved` raises it again
            with suppress(InvalidStateError):
                future.set_exception(error)
        else:
            with suppress(InvalidStateError):  # given up meanwhile
                future.set_result(name)

    def _claim(self) -> str:
        """Return the name that the processes agree on, and claim its folder."""
        key = f"kinetoscope/run/{self._number}"
        store = JobStore.find()
        attempt = self._join(store, key)
        self.token, name = attempt.token, attempt.name
        try:
            name = claim_folder(self.logdir, name, attempt.token, overwrite=self._overwrite)
        except OSError as error:
            self.problem = str(error)
        agreed_name = None if store is None else store.agree(f"{key}/attempt of {attempt.name}", name)
        return agreed_name or name

    def _join(self, store: JobStore | None, key: str) -> Attempt:
        """Return the attempt that this process belongs to."""
        facts, rank_info = launcher_facts(os.environ, self._number), current_rank_info()
        facts = replace(facts, text=f"{facts.text}/{self._requested_name or ''}" if facts.text else "")
        name, token = self._requested_name or self._started, f"{facts.text}/{uuid.uuid4().hex}"
        own = Attempt(name, token, process_start_ns() or time.time_ns())
        agreed_token = None if store is None else store.agree(f"{key}/token", token)
        if store is not None and agreed_token is not None:
            own = replace(own, token=agreed_token, agreed_by=store.kind)
            own = replace(own, name=self._requested_name or store.agree(key, name) or name)
        if not facts.text or rank_info.world_size < 2:
            return own
        with suppress(OSError, UsageError):  # then no other process can write there either, or the name exists already
            attempt, self.is_certain = join_attempt(self.logdir, facts, own, rank_info.global_rank)
            own = replace(attempt, name=self._requested_name or validate_run_name(attempt.name))
        if store is not None and agreed_token is not None:
            with suppress(ValueError, TypeError):
                answer = store.agree(f"{key}/joined", json.dumps([asdict(own), self.is_certain]))
                if answer is not None:
                    attempt, self.is_certain = json.loads(answer)
                    own = Attempt(**attempt)
        return own


def name_for_all() -> str:
    """Return the launcher's name for the job, or else a time on which all its processes agree."""
    name = run_name_from(os.environ)
    if name is not None:
        return name
    proposal, key = time.strftime("%Y%m%d-%H%M%S"), f"kinetoscope/name/{next(_count)}"
    store = JobStore.find()
    return proposal if store is None else store.agree(key, proposal) or proposal
