"""The trace: what one worker did in one span, as columns, with what follows from them."""

from .assemble import Parts, assemble
from .model import (
    COLLECTED,
    DEVICE_KINDS,
    HOST_KINDS,
    LAUNCH_KINDS,
    NONE,
    Finding,
    Meta,
    Trace,
)

__all__ = [
    "COLLECTED",
    "DEVICE_KINDS",
    "HOST_KINDS",
    "LAUNCH_KINDS",
    "NONE",
    "Finding",
    "Meta",
    "Parts",
    "Trace",
    "assemble",
]
