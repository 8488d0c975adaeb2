"""Record this sample again: two processes train a small convolutional network, data-parallel over gloo, on the CPU."""

from pathlib import Path

from kinetoscope.demo import record

if __name__ == "__main__":
    record(str(Path(__file__).parent), steps=8, processes=2, run="ddp")
