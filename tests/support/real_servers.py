"""Names of the real recordings of servers, below the folder of real traces."""

PREFILL = "../inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz"
MIXED = "../inference/vllm_prefilldecode_piecewise/graph_execution.json.gz"
DECODE = "single/tracelens_vllm_decode_graph_execution.json.gz"
B300 = "single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz"
QWEN = "single/sglang_MI300_qwen3_30b_TP-0-DECODE.trace.json.gz"
DEEPSEEK = "claims/sglang_MI300_deepseek_r1_TP-0-DECODE.trace.json.gz"
CAPTURE = "single/tracelens_mi300_sglang_capture_bs_32_rank0.json.gz"
DIFFUSION = "../inference/xdit_flux1_aiter_sage/profile_trace_rank_0.json.gz"
VLLM_CAPTURE = (
    "../inference/vllm_prefilldecode_piecewise/capture_traces/graph_capture_rank_0.1773709679453551615.pt.trace.json.gz"
)
DIFFUSION_CAPTURE = "../inference/xdit_flux1_aiter_sage/capture_traces/capture_trace_rank_0.json.gz"

SERVERS = (PREFILL, MIXED, DECODE, B300, QWEN, DEEPSEEK, CAPTURE, VLLM_CAPTURE, DIFFUSION)
