"""Record this sample again: one process trains a small transformer on the CPU, with everything recorded."""

import os
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch reports each recording on standard error
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # and each tensor that is older than the recording

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from kinetoscope import Tracer, cyclic

WORDS, LENGTH, WIDTH = 64, 24, 32


class Reader(nn.Module):
    """Guesses each next word."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=64, batch_first=True)
        self.guess = nn.Linear(WIDTH, WORDS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, text):  # noqa: D102
        return self.guess(self.layer(self.words(text), src_mask=self.mask, is_causal=True))


def counting_texts(number):
    starts = torch.randint(WORDS, (number, 1))
    return DataLoader(TensorDataset((starts + torch.arange(LENGTH + 1)) % WORDS), batch_size=16)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters())
    logdir = Path(__file__).parent
    schedule = cyclic(wait=1, warmup=1, active=4)
    with Tracer(logdir, run="transformer", schedule=schedule, profile_memory=True, with_stack=True) as tracer:
        for (text,) in tracer.steps(counting_texts(16 * schedule.steps_needed)):
            with tracer.marker("forward"):
                logits = model(text[:, :-1])
                with tracer.marker("loss"):
                    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
            with tracer.marker("backward"):
                loss.backward()
            with tracer.marker("clip → step"):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    print(*tracer.saved_traces, sep="\n")


if __name__ == "__main__":
    main()
