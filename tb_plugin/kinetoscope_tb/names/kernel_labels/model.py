"""What a label of a kernel consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Label:
    """The parts of a kernel's label, in the order in which people read them.

    Args:
        what: What it does: GEMM, conv dgrad, softmax_forward, elementwise mul.
        where: Library, architecture, tile, alignment; as far as the name has them.
        dtype: The number format.
        last: Vector width, or the number of a generated kernel.
        more: Further parts of the name, which only tell kernels apart that are otherwise labeled the same.
    """

    what: str
    where: tuple[str, ...] = ()
    dtype: str = ""
    last: str = ""
    more: tuple[str, ...] = ()

    def text(self, more: tuple[str, ...] = ()) -> str:
        """The label with some further parts."""
        return " ".join(part for part in (self.what, *self.where, *more, self.dtype, self.last) if part)
