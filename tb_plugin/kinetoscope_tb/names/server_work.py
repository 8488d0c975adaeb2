"""What a server's host does between two iterations, by the names of its annotations, operators and Python functions.

The first row of the table that fits a name applies. A range inside another one counts for its own row, whichever is
listed first: waiting and sampling are parts of larger functions. tests/unit/names/test_server_work.py holds a name for
each server.
"""

from __future__ import annotations

from functools import lru_cache

from .regex import regex

WORK = ("waiting", "sampling", "detokenizing", "input_preparation", "scheduling")
"""`waiting` for a request, or for the process that schedules; `sampling` chooses tokens; `detokenizing` turns tokens
into answers, with stop conditions and bookkeeping; `input_preparation` builds the next batch's tensors; `scheduling`
chooses the requests of the next batch."""

_LINE = r"\.py\(\d+\): "
_FROM_SCHEDULER = regex(
    rf"^vllm/.*shm_broadcast{_LINE}|^sglang/.*{_LINE}broadcast_pyobj$|{_LINE}_broadcast_new_requests$"
)
_TABLE = tuple(
    (work, regex("|".join(patterns)))
    for work, patterns in {
        "waiting": (
            r"^scheduler\.(?:idle|recv_requests|sanity_check_cache)$",  # SGLang 0.5
            rf"vllm/.*shm_broadcast{_LINE}(?:dequeue|acquire_read|spin)$",
            rf"vllm/distributed/utils{_LINE}sched_yield$",
            rf"vllm/v1/engine/core{_LINE}_process_input_queue$",
            rf"sglang/.*/scheduler{_LINE}(?:recv_requests|self_check_during_idle|on_idle)$",
            rf"tensorrt_llm/.*{_LINE}(?:_fetch_new_requests|_fetch_and_activate_new_requests|get_from_request_queue)$",
        ),
        "sampling": (
            r"^(?:gpu_model_runner: )?[Ss]ample$",
            rf"vllm/.*/gpu(?:/|_)model_runner{_LINE}_?sample(?:_tokens)?$",
            rf"(?:vllm|sglang|tensorrt_llm|atom)/.*sampler{_LINE}",
            rf"sglang/.*/model_runner{_LINE}sample$",
            rf"tensorrt_llm/.*{_LINE}_sample_async$",
            r"^aten::(?:multinomial|argmax|exponential_)$",
            r"^sgl_kernel::(?:top_k|top_p|min_p)",
        ),
        "detokenizing": (
            r"^scheduler\.process_batch_result$",
            r"^llm_engine step: process_outputs$",
            r"^(?:gpu_model_runner: )?[Bb]ookkeep$",
            r"^update_from_output$",
            rf"vllm/v1/core/sched/scheduler{_LINE}update_from_output$",
            rf"(?:vllm|sglang)/.*detokenizer\w*{_LINE}",
            rf"vllm/v1/engine/output_processor{_LINE}process_outputs$",
            rf"sglang/.*/scheduler\w*{_LINE}(?:process_batch_result\w*|stream_output\w*)$",
            rf"tensorrt_llm/.*{_LINE}(?:_handle_responses|_update_requests|_process_previous_batch)$",
        ),
        "input_preparation": (
            r"^(?:gpu_model_runner: )?[Pp]reprocess$",
            rf"vllm/.*{_LINE}(?:_prepare_inputs?|_update_states|_prepare_input_ids|_build_attention_metadata)$",
            rf"sglang/.*{_LINE}(?:prepare_for_(?:extend|decode)|get_model_worker_batch|init_forward_metadata\w*)$",
            rf"sglang/.*/forward_batch_info{_LINE}init_new$",
            rf"tensorrt_llm/.*{_LINE}(?:_prepare_inputs|_prepare_tp_inputs|prepare_resources)$",
        ),
        "scheduling": (
            r"^scheduler\.(?:get_next_batch_to_run|process_input_requests)$",
            r"^schedule(?:: .*)?$",
            rf"vllm/v1/core/sched/scheduler{_LINE}schedule$",
            rf"sglang/.*/scheduler\w*{_LINE}(?:get_next_batch_to_run|get_new_batch_prefill\w*|update_running_batch)$",
            rf"sglang/.*/scheduler\w*{_LINE}process_input_requests$",
            rf"sglang/.*/schedule_policy{_LINE}",
            rf"tensorrt_llm/.*{_LINE}(?:_schedule|_prepare_and_schedule_batch)$",
        ),
    }.items()
)


def receives_from_scheduler(frame: str) -> bool:
    """Whether a server's thread takes work from the process that schedules in a frame of this name, not requests."""
    return bool(_FROM_SCHEDULER.search(frame))


@lru_cache(maxsize=20_000)
def server_work(name: str) -> str:
    """What a server does in a range of this name (WORK); empty if it is none of that, or unknown."""
    return next((work for work, pattern in _TABLE if pattern.search(name)), "")
