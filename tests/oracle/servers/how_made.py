"""Make these recordings again: `how_made.py model DIR`, start a server on DIR, then `how_made.py vllm` or `sglang`.

```
python -m vllm.entrypoints.openai.api_server --model DIR --load-format dummy --enforce-eager --port 18080 \
  --max-model-len 256 --profiler-config '{"profiler": "torch", "torch_profiler_dir": "/tmp/vllm",
  "torch_profiler_with_stack": false, "detailed_trace_annotation": true, "ignore_frontend": true}'
python -m sglang.launch_server --model-path DIR --load-format dummy --device cpu --attention-backend torch_native \
  --sampling-backend pytorch --disable-radix-cache --disable-overlap-schedule --port 18080
```
"""

import json
import sys
import threading
import time
import urllib.request
from pathlib import Path

ADDRESS = "http://127.0.0.1:18080"
REQUESTS = [(10 + 7 * number, 6 + 2 * number) for number in range(4)]  # tokens of the prompt and of the answer
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 264,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
    "bos_token_id": 256,
    "eos_token_id": 257,
}
STAGES = {
    "output_dir": "/tmp/sglang",
    "activities": ["CPU"],
    "with_stack": False,
    "num_steps": 3,
    "profile_by_stage": True,
    "profile_id": "load7",
}


def model(folder: Path) -> None:
    """Write a Llama without weights, and a tokenizer of single bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    names = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(vocab={name: number for number, name in enumerate(names)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps(LLAMA))


def post(route: str, body: object = None) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ADDRESS + route, data, {"Content-Type": "application/json"}, method="POST")
    urllib.request.urlopen(request, timeout=300).read()


def complete(server: str, prompt: int, answer: int) -> None:
    if server == "vllm":
        post("/v1/completions", {"prompt": "x" * prompt, "max_tokens": answer, "ignore_eos": True, "temperature": 0})
    else:
        settings = {"max_new_tokens": answer, "ignore_eos": True, "temperature": 0}
        post("/generate", {"text": "x" * prompt, "sampling_params": settings})


def record(server: str) -> None:
    """Send the requests while the server records."""
    complete(server, 8, 2)
    post("/start_profile", None if server == "vllm" else STAGES)
    threads = [threading.Thread(target=complete, args=(server, *request)) for request in REQUESTS]
    for thread in threads:
        thread.start()
        time.sleep(0.03)
    for thread in threads:
        thread.join()
    if server == "vllm":
        post("/stop_profile")


if __name__ == "__main__":
    model(Path(sys.argv[2])) if sys.argv[1] == "model" else record(sys.argv[1])
