"""What an answer must say to be right, per cause: the one table that a reader can argue with.

`title` must be found in the claim's own sentence; `rest` somewhere in it, its evidence, its action or its filter. Both are
patterns, without case. Besides, a case names its culprits (an operator, a function, a rank, a device, a step), and what
the sentence must not say ("every step" of what happens once). A true statement about something else isn't right:
"communicate less" doesn't say that rank 2 loads its data late.
"""

from __future__ import annotations

from dataclasses import dataclass

LOADER = (
    r"wait\w*( [\d.,]+ \w+)? for (its |the |a )?(next )?(data|batch|loader)|data ?load|load\w* (its )?data|\bloader"
)
HOST = r"host|python|\bcpu\b|\w+\.py\b|waits? (for|on) \W?\w+"
WAITS = r"synchroni|\bitem\b|reads? .*(device|gpu)|wait\w* for (the )?(gpu|device)|nonzero|sync"
COMMUNICATION = r"communicat|all[-_ ]?reduce|all[-_ ]?gather|broadcast|collective|all[-_ ]?to[-_ ]?all"


@dataclass(frozen=True)
class Words:
    """What must be said of a cause."""

    title: str
    rest: str = ""


CAUSES = {
    "loader": Words(LOADER),
    "synchronize": Words(WAITS),
    "pageable_copies": Words(r"\bcop(y|ies|ying)\b|pageable|transfer", r"pin"),
    "copies_not_hidden": Words(r"\bcop(y|ies|ying)\b|transfer", r"overlap|stream|prefetch|non_blocking|pin"),
    "small_copies": Words(r"\bcop(y|ies|ying)\b|transfer", r"small|many|batch|fewer|at once|together|pin"),
    "copies_to_host": Words(r"\bcop(y|ies|ying)\b|transfer"),
    "pinning": Words(r"\bpin|_pin_memory|cudaHostAlloc|page-?locked", r"\bpin(ned|ning)?\b"),
    "memsets": Words(r"memset|\bzero|\bfill"),
    "longer_inputs": Words(r"do(es)? more work|comput\w* more|(larger|longer) inputs|inputs? .*(larger|longer|var(y|ies))|more kernels"),
    "device_copies": Words(r"\bcop(y|ies|ying)\b|contiguous|layout|transpos", r"dtod|device[- ]to[- ]device|on the device|contiguous|clone|layout"),
    "launch_bound": Words(r"launch|small (kernels|operators)|host|tiny|short kernels|one \w+ after (the )?(other|another)", r"graph|fus|compile|foreach"),
    "host_function": Words(HOST),
    "host_unrecorded": Words(r"host|python|no recorded reason|not recorded|unrecorded|nothing (was )?recorded"),
    "garbage_collection": Words(r"garbage|\bgc\b|collect\w* garbage"),
    "checkpoint": Words(r"checkpoint|\bsave|writes? .*file|serializ"),
    "evaluation": Words(r"evaluat|validat|\beval\b|step \d+"),
    "recompilation": Words(r"recompil|compil"),
    "allocation": Words(r"alloc|cudamalloc|cudafree|cuMem\w+|(asking|driver|mapp\w+) .*memory"),
    "precision": Words(r"precision|tf32|tensor cores|float32|fp32|matrix cores"),
    "poor_kernel": Words(r"roof|peak|below|efficien|\d+(\.\d+)? ?% of"),
    "falling_clocks": Words(r"clock|throttl|slow\w* (down|from|over|step)|gets? slower|longer from step|power|temperature"),
    "two_speeds": Words(r"two speeds|equal kernels take different times|clock|neighbo|shared|other (job|process|work)|throttl|varies|same (kernel|work)"),
    "small_collectives": Words(COMMUNICATION, r"bucket|small|coalesc|latency|fewer calls|larger"),
    "communication": Words(COMMUNICATION),
    "slow_link": Words(r"link|transfer|send|recv"),
    "straggler": Words(r"\brank|\bworker"),
    "bubble": Words(r"bubble|pipeline|stage"),
    "devices_take_turns": Words(r"takes? turns|alternat|one (gpu|device)? ?at a time|wait\w* for (each|one an)other|(gpu|device)s? [01]\b.*(idle|wait|\d ?%)"),
    "idle_device": Words(r"(gpu|device)s? \d\b.*(idle|unused|nothing|not used|\d ?%)|(idle|unused|nothing) .*(gpu|device)s? \d\b|1 of \d (gpu|device)"),
    "serial_streams": Words(r"stream|serial|fill\w*|multiprocessor|\bSMs?\b|occupan"),
    "imbalance": Words(r"imbalanc|uneven|unequal|more tokens|expert|\brank \d"),
    "host_optimizer": Words(r"optimizer|adam"),
    "recomputation": Words(r"recomput|activation checkpoint|checkpointfunction"),
    "set_up": Words(r"first step|warm[- ]?up|set-?up|start-?up|step \d+"),
    "attention": Words(r"attention|softmax"),
    "elementwise": Words(r"elementwise|element-wise|pointwise|fus"),
    "casts": Words(r"cast|convert|conversion|number format|dtype"),
    "single_kernel_trend": Words(r"slower|longer|grow|trend|increas|from step"),
    "server_function": Words(HOST, r"iteration"),
    "missing_graphs": Words(r"without (a |the |its |their )?graph|eager|(no|a) graph|not captured", r"captur|pad"),
    "waits_for_requests": Words(r"waits? .*\brequests?\b|no requests?\b|\bload\b"),
    "server_device": Words(r"bandwidth|matmul|attention|compute rate|kernels"),
    "slow_launches": Words(r"launch"),
    "profiler": Words(r"profil|record"),
    "graph_breaks": Words(rf"graph[- ]break|pieces|(cut|compiled) .*(graph|frame)|between .*graphs|{HOST}"),
    "small_grids": Words(r"small kernels|fill\w*|multiprocessor|\bSMs?\b|occupan|few blocks"),
    "pauses_behind_reads": Words(rf"{HOST}|{WAITS}"),
    "single_step": Words(r"\bstep \W?(ProfilerStep#)?\d+"),
}  # fmt: skip

EVERY_STEP = r"(each|every|all) (\w+ )?steps?\b"  # what a cause of some steps mustn't claim
