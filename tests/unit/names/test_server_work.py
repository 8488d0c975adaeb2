"""What a server's host does, by real names of its annotations, operators and functions."""

import pytest

from kinetoscope_tb.names.server_work import server_work


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("vllm/distributed/device_communicators/shm_broadcast.py(512): dequeue", "waiting"),
        ("vllm/v1/engine/core.py(301): _process_input_queue", "waiting"),
        ("/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py(1021): recv_requests", "waiting"),
        ("tensorrt_llm/_torch/pyexecutor/py_executor.py(1200): _fetch_new_requests", "waiting"),
        ("gpu_model_runner: sample", "sampling"),
        ("Sample", "sampling"),
        ("vllm/v1/sample/sampler.py(68): forward", "sampling"),
        ("vllm/v1/worker/gpu_model_runner.py(2100): _sample", "sampling"),
        ("/sgl-workspace/sglang/python/sglang/srt/layers/sampler.py(77): forward", "sampling"),
        ("/sgl-workspace/sglang/python/sglang/srt/model_executor/model_runner.py(2510): sample", "sampling"),
        ("aten::argmax", "sampling"),
        ("gpu_model_runner: bookkeep", "detokenizing"),
        ("vllm/v1/core/sched/scheduler.py(900): update_from_output", "detokenizing"),
        (
            "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler_output_processor_mixin.py(389): "
            "process_batch_result_decode",
            "detokenizing",
        ),
        ("gpu_model_runner: preprocess", "input_preparation"),
        ("vllm/v1/worker/gpu_model_runner.py(931): _update_states", "input_preparation"),
        ("vllm/v1/worker/gpu_model_runner.py(1500): _prepare_inputs", "input_preparation"),
        (
            "/sgl-workspace/sglang/python/sglang/srt/managers/schedule_batch.py(1990): prepare_for_decode",
            "input_preparation",
        ),
        ("schedule: allocate_slots", "scheduling"),
        ("vllm/v1/core/sched/scheduler.py(190): schedule", "scheduling"),
        ("/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py(1700): get_next_batch_to_run", "scheduling"),
        ("tensorrt_llm/_torch/pyexecutor/py_executor.py(1400): _schedule", "scheduling"),
        # recorded by SGLang 0.5.23, without stacks
        ("scheduler.idle", "waiting"),
        ("scheduler.recv_requests", "waiting"),
        ("scheduler.sanity_check_cache", "waiting"),
        ("scheduler.process_input_requests", "scheduling"),
        ("scheduler.get_next_batch_to_run", "scheduling"),
        ("scheduler.process_batch_result", "detokenizing"),
        ("scheduler.run_batch", ""),
        ("vllm/v1/worker/gpu_model_runner.py(3380): execute_model", ""),
        ("aten::mm", ""),
        ("train.py(12): schedule", ""),
    ],
)
def test_work_is_known_by_names(name, work):
    assert server_work(name) == work
