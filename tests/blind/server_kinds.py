"""Servers: a function that iterations wait for, all or some; iterations without their graph; none to serve."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from . import activities as act
from . import devices as dv
from .cases import Case, healthy_ns, kind, large, place_name
from .machine import Pace, Thread
from .serving import PYTHON, Server, drawn_server, serve
from .training import Hook, Place, Training

EVERY_ITERATION = r"(each|every|all) (\w+ )?iterations?\b"
TOKENIZERS = (
    ("gateway/intake.py(77): admit", "text/bpe.py(140): split_words", "<built-in method encode_batch of builtins.Tokenizer object>"),
    ("serve/session.py(52): open_stream", "nlp/fast_encoder.py(88): to_ids", "<built-in method encode of tiktoken.CoreBPE object>"),
    ("frontend.py(201): accept_prompt", "vocab.py(33): lookup", "<built-in method findall of re.Pattern object>"),
)  # fmt: skip
SCHEDULERS = (
    ("kv/pager.py(93): reserve_pages", "kv/lru.py(40): make_room", "<built-in method sort of list object>"),
    ("memory/block_table.py(60): grow", "memory/prefix_tree.py(118): match", "<built-in function hash>"),
    ("planner/budget.py(210): fit", "planner/budget.py(255): rank_all", "<built-in function sorted>"),
)
WAITS = (
    ("queue.py(171): get", "threading.py(327): wait", "<built-in method acquire of _thread.lock object at 0x7f10>"),
    ("selectors.py(468): select", "<built-in method poll of select.epoll object at 0x7f33>"),
    ("<built-in method get of _queue.SimpleQueue object at 0x7f52>",),
    ("selectors.py(323): select", "<built-in method select of select.select object at 0x7f71>"),
    ("queue.py(180): get", "threading.py(331): wait", "<built-in method acquire of _thread.lock object at 0x7f90>"),
)


def server_job(chance: Random, server: Server, **fields: object) -> Training:
    """A job of a server whose device is busy."""
    defaults = {
        "device": chance.choice([dv.H100, dv.A100]),
        "steps": chance.randint(36, 60),
        "layers": chance.randint(8, 16),
        "hidden": chance.choice([2048, 3072, 4096]),
        "has_stacks": True,
        "marks_steps": False,
        "program": serve(server),
        "noise": chance.uniform(0.002, 0.02),
    }
    return large(chance, **{**defaults, **fields})


def nested(frames: tuple[str, ...], length: act.Length) -> Hook:
    """Functions of Python, each called by the one before, of which the innermost takes so long."""

    def work(place: Place) -> None:
        duration = length(place.rank, place.step)
        if duration:
            _call(place.host, frames, duration * place.random.uniform(0.9, 1.1))

    return work


def _call(host: Thread, frames: tuple[str, ...], duration: float) -> None:
    with host.range(frames[0], PYTHON):
        if frames[1:]:
            host.spend(int(0.03 * duration))
            _call(host, frames[1:], 0.97 * duration)
        else:
            host.spend(int(duration))


def random_steps(chance: Random, steps: int, share: float) -> frozenset[int]:
    """Some steps of so many, but the first and the last."""
    return frozenset(chance.sample(range(1, steps - 1), round(share * steps)))


def _functions(frames: tuple[str, ...]) -> str:
    """A pattern for any of the program's functions."""
    return "|".join(place_name(frame) for frame in frames if ".py(" in frame)


@kind
def server_tokenizes_in_its_loop(chance: Random) -> Case:
    """Where requests come, the engine's own thread tokenizes their prompts; the device waits for it."""
    steps = chance.randint(36, 60)
    arriving = random_steps(chance, steps, chance.uniform(0.15, 0.7))
    has_prefills = chance.random() < 0.6
    server = drawn_server(chance, chance.randint(4, 24), lambda step: int(has_prefills and step in arriving))
    job = server_job(chance, server, steps=steps)
    frames = chance.choice(TOKENIZERS)
    length = act.in_steps(healthy_ns(job) * chance.uniform(1.2, 3), arriving)
    return Case(
        "server_function", job.with_hook("data", nested(frames, length)), job, title=(_functions(frames),),
        rest=(r"\d+ of \d+ iterations",), never=(EVERY_ITERATION,),
        truth=f"{frames[0]} in {len(arriving)} of {steps} iterations",
    )  # fmt: skip


@kind
def server_allocates_slowly_in_some_iterations(chance: Random) -> Case:
    """A function of the scheduler that runs in each iteration takes long in each k-th."""
    server = drawn_server(chance, chance.randint(4, 24))
    job = server_job(chance, server)
    frames, period = chance.choice(SCHEDULERS), chance.choice([3, 4, 5, 7])
    slow = range(chance.randrange(1, period), job.steps, period)
    usual = healthy_ns(job) * chance.uniform(0.002, 0.02)
    length = act.in_steps(healthy_ns(job) * chance.uniform(2.5, 8), slow, usual)
    return Case(
        "server_function",
        job.with_hook("start", nested(frames, length)), job.with_hook("start", nested(frames, act.always(usual))),
        title=(_functions(frames),), rest=(r"\d+ of \d+ iterations",), never=(EVERY_ITERATION,),
        truth=f"{frames[0]} in {len(slow)} of {job.steps} iterations",
    )  # fmt: skip


@kind
def server_schedules_slowly(chance: Random) -> Case:
    """A function of the scheduler takes long in each iteration."""
    server = drawn_server(chance, chance.randint(4, 24))
    job = server_job(chance, server)
    frames = chance.choice(SCHEDULERS)
    length = act.always(healthy_ns(job) * chance.uniform(1.2, 2.5))
    return Case(
        "server_function", job.with_hook("start", nested(frames, length)), job, title=(_functions(frames),),
        truth=f"{frames[0]} in each iteration",
    )  # fmt: skip


@kind
def server_misses_graphs(chance: Random) -> Case:
    """Some batches are of a size for which no graph was captured: these iterations launch each kernel."""
    small, big = chance.randint(4, 16), chance.randint(17, 40)
    period, first = chance.choice([2, 3, 4]), chance.randrange(2)
    has_stacks, pace = (
        chance.random() < 0.5,
        Pace(*(int(chance.uniform(0.8, 1.3) * ns) for ns in (55_000, 9_000, 3_000))),
    )

    def is_big(step: int) -> bool:
        return step % period == first

    server = replace(drawn_server(chance, small), batch=lambda step: big if is_big(step) else small)
    eager = replace(server, has_graph=lambda step: not is_big(step))
    mended = server_job(chance, server, has_stacks=has_stacks, pace=pace, hidden=2048, device=dv.H100)
    count = sum(map(is_big, range(mended.steps)))
    sizes = (rf"\b{big} requests|\b{big}\b",) if server.dialect else ()
    return Case(
        "missing_graphs", replace(mended, program=serve(eager)), mended, rest=(r"\d+ of \d+ (decode )?iterations", *sizes),
        never=(EVERY_ITERATION,), truth=f"{count} of {mended.steps} iterations, of {big} requests, launch each kernel",
    )  # fmt: skip


@kind
def server_waits_for_requests(chance: Random) -> Case:
    """There is nothing to do: the engine waits in a queue or a socket until a request comes."""
    steps = chance.randint(40, 60)
    arriving = random_steps(chance, steps, chance.uniform(0.2, 0.4))
    has_prefills = chance.random() < 0.7
    server = drawn_server(chance, chance.randint(1, 6), lambda step: int(has_prefills and step in arriving))
    job = server_job(chance, server, steps=steps)
    idle = healthy_ns(job) * chance.uniform(4, 12)
    frames = chance.choice(WAITS)
    wait = nested(
        frames, lambda rank, step: idle * Random(f"{job.seed} {step}").expovariate(1) if step in arriving else 0
    )
    return Case(
        "waits_for_requests", job.with_hook("data", wait), job, never=(EVERY_ITERATION,),
        wrong_remedies=(r"launch less|torch\.compile|async-scheduling|overlap|graphs|fus",),
        truth=f"the server waits in {frames[0]} {len(arriving)} times",
    )  # fmt: skip


@kind
def server_waits_for_its_own_thread(chance: Random) -> Case:
    """The engine waits in a queue while another thread of the process prepares what it waits for."""
    server = drawn_server(chance, chance.randint(4, 24))
    job = server_job(chance, server)
    frames, waiting = chance.choice(TOKENIZERS), chance.choice([WAITS[0], WAITS[2], WAITS[4]])
    length = healthy_ns(job) * chance.uniform(1.2, 2.5)

    def wait(place: Place) -> None:
        worker = place.state.setdefault("worker", Thread(place.process, place.process.pid + 80, "tokenizer"))
        before = place.host.spend(0)
        worker.spend(0, after=[before])
        _call(worker, frames, length * place.random.uniform(0.9, 1.1))
        _wait(place.host, waiting, worker)

    return Case(
        "server_function", job.with_hook("data", wait), job, title=(_functions(frames),),
        wrong_remedies=(r"more requests",), truth=f"{frames[0]} of another thread",
    )  # fmt: skip


def _wait(host: Thread, frames: tuple[str, ...], worker: Thread) -> None:
    with host.range(frames[0], PYTHON):
        if frames[1:]:
            _wait(host, frames[1:], worker)
        else:
            host.wait(worker.spend(0))


@kind
def server_without_stacks(chance: Random) -> Case:
    """A slow function of the scheduler, of which nothing was recorded."""
    server = drawn_server(chance, chance.randint(4, 24))
    job = server_job(chance, server, has_stacks=False)
    length = act.always(healthy_ns(job) * chance.uniform(1.2, 2.5))
    return Case(
        "host_unrecorded", job.with_hook("start", nested(chance.choice(SCHEDULERS), length)), job,
        truth="the scheduler is slow, and no stacks were recorded",
    )  # fmt: skip


@kind
def busy_server(chance: Random) -> Case:
    """The device is busy all the time: it reads weights and caches near its bandwidth."""
    server = replace(drawn_server(chance, chance.randint(8, 32)), is_ahead=True)
    job = server_job(chance, server, hidden=4096, layers=16, has_stacks=chance.random() < 0.5)
    return Case("server_device", job, None, never=(r"host", r"waits? for"), truth="kernels near the device's bandwidth")
