"""Why an operator runs far below its roof, as far as its shapes and the names of its kernels show it.

Each function looks for one cause, and returns it or None. Without any, the advice says that the cause isn't known.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..measures.calls.kernel_work import Group
from ..measures.calls.matrix_work import ProductSizes, product_sizes
from ..measures.calls.roofline import Limits
from ..names.kernel_kinds import alignment, output_tile, written_for
from ..names.text import digits, time

TINY_NS = 5_000
"""A kernel's start and end alone take 2 to 5 µs: below that a device never reaches its roof."""
_SKINNY = 16  # rows: the smallest tile of a matrix unit; with fewer, the rest of the tile is wasted
_LONG = 8  # times the output's sides: an inner dimension that dominates the work
_TILE = 128  # a common side of a tile, where the kernel's name has none
_PER_LOAD = {"fp64": 2, "fp32": 4, "tf32": 4, "fp16": 8, "bf16": 8, "fp8": 16, "int8": 16}
"""Elements in 16 bytes, the widest load: sizes that aren't multiples of it need narrower ones."""
_FULL_WAVES = 2 / 3  # of the multiprocessors' time is used by the last, partly filled wave of tiles and those before
_NEARLY_ALL = 0.75  # of the multiprocessors have a block: that few are idle explains little
_HOPPER = (9, 0)
_MUCH = 0.3  # of a matrix operator's time in kernels that multiply no matrices
_FEW_KERNELS = 4  # times TINY_NS: a call that takes longer isn't explained by the starts and ends of its kernels


@dataclass(frozen=True)
class Cause:
    """A cause: a sentence with its evidence, what to do, and whether it is likely, or else just possible."""

    sentence: str
    action: str
    is_likely: bool = True


Finder = Callable[[Group, Limits], Cause | None]


def misaligned_sizes(group: Group, limits: Limits) -> Cause | None:
    """Sizes that aren't multiples of 16 bytes, so that matrices can't be loaded in full width.

    Only those of contiguous dimensions matter: of the output that is the last one, and an input surely has one of such
    a size if both of its sizes are. Of others the shapes don't say it.
    """
    sizes, per_load = product_sizes(group.name, group.shapes), _PER_LOAD.get(group.number_format or "", 0)
    elements = alignment(group.kernel)
    if sizes is None or not per_load or (elements is not None and elements >= per_load):
        return None
    odd = sorted({size for size in (sizes.m, sizes.n, sizes.k) if size % per_load})
    odd = [size for size in odd if size > _SKINNY]  # a size as small as that is skinny, whatever it is a multiple of
    if not odd:
        return None
    odd_sizes = " and ".join(str(size) for size in odd)
    multiples = " and ".join(str(-(-size // per_load) * per_load) for size in odd)
    which = (
        f": the kernel loads {elements} element{'s' * (elements > 1)} at a time (`align{elements}`)" if elements else ""
    )
    old = written_for(group.kernel)
    is_old = old is not None and limits.compute_capability is not None and old < limits.compute_capability
    name = f", and is one for compute capability {old[0]}.{old[1]}" if old and is_old and which else ""
    is_sure = bool(which) or sizes.n in odd or {sizes.m, sizes.k} <= set(odd)
    where = ", so" if is_sure else f"; if {'it is' if len(odd) == 1 else 'they are'} contiguous in an input,"
    consequence = which + name if which else f"{where} rows can't be loaded 16 bytes at a time"
    return Cause(
        f"{odd_sizes} {'is' if len(odd) == 1 else 'are'} no multiple of {per_load}{consequence}",
        f"Pad {odd_sizes} to {multiples} (multiples of {per_load}), or choose sizes that are multiples of 64 or 128.",
        is_sure,
    )


def few_tiles(group: Group, limits: Limits) -> Cause | None:
    """Fewer tiles of the output than half of the multiprocessors."""
    sizes, count = product_sizes(group.name, group.shapes), limits.multiprocessors
    if sizes is None or not count or group.blocks_per_sm >= 1:
        return None
    tile = output_tile(group.kernel)
    tiles = _tiles(sizes, tile or (_TILE, _TILE))
    if tiles > count / 2:
        return None
    is_long = sizes.k >= _LONG * max(sizes.m, sizes.n)
    of = f" of {tile[0]} × {tile[1]}" if tile else ""
    least = " or more" if not limits.is_named else ""
    return Cause(
        f"the output of {_batch_factor(sizes)}{sizes.m} × {sizes.n} has only {tiles} tile{'s' * (tiles > 1)}{of} for "
        f"{count}{least} multiprocessors" + (f", while the inner dimension of {sizes.k} is long" if is_long else ""),
        "Split the inner dimension over more multiprocessors (split-K): a batched matmul over pieces of it and a sum, "
        "`torch.compile(mode='max-autotune')`, or a newer version of the library."
        if is_long
        else "Give one call more to do: larger batches, or several such matmuls as one batched or grouped matmul.",
    )


def _tiles(sizes: ProductSizes, tile: tuple[int, int]) -> int:
    """The number of tiles; a library may compute the transposed product, so the fewer of both ways."""
    return sizes.batch * min(math.ceil(sizes.m / tile[way]) * math.ceil(sizes.n / tile[1 - way]) for way in (0, 1))


def _batch_factor(sizes: ProductSizes) -> str:
    return f"{sizes.batch} × " if sizes.batch > 1 else ""


def skinny(group: Group, _limits: Limits) -> Cause | None:
    """A matrix with so few rows or columns that a matrix unit is mostly idle."""
    sizes = product_sizes(group.name, group.shapes)
    if sizes is None or min(sizes.m, sizes.n, sizes.k) > _SKINNY:
        return None
    side = min(sizes.m, sizes.n, sizes.k)
    return Cause(
        f"one side has only {side} {'row' if side == 1 else 'rows'}, so a matrix of {max(sizes.m, sizes.n)} × "
        f"{sizes.k} is read for little work",
        "Batch more rows per call, or fuse the matmul with its neighbors (`torch.compile`).",
    )


def tiny(group: Group, _limits: Limits) -> Cause | None:
    """Calls whose work takes less time than a kernel's start and end."""
    if group.roof_ns is None or group.roof_ns / group.calls >= TINY_NS or group.call_ns >= _FEW_KERNELS * TINY_NS:
        return None
    return Cause(
        f"each call is tiny ({time(group.roof_ns / group.calls)} at the roof), so most of its time is the start "
        "and end of a kernel",
        "Give one call more to do: larger batches, or many small calls as one batched or grouped call.",
    )


def old_kernel(group: Group, limits: Limits) -> Cause | None:
    """A kernel that was written for an older architecture than Hopper, on Hopper or newer."""
    old, new = written_for(group.kernel), limits.compute_capability
    is_flash_2 = bool(re.search(r"(?:pytorch_flash|flash)::flash_(?:fwd|bwd)", group.kernel))
    if new is None or new < _HOPPER:
        return None
    if is_flash_2:
        return Cause(
            f"FlashAttention 2 doesn't use the matrix instructions of compute capability {new[0]}.{new[1]}",
            "Use FlashAttention 3, or cuDNN's attention: `sdpa_kernel(SDPBackend.CUDNN_ATTENTION)`.",
        )
    if old is None:
        return None
    return Cause(
        f"the kernel was written for compute capability {old[0]}.{old[1]}, and the device has {new[0]}.{new[1]}, with "
        "faster matrix instructions",
        "Update PyTorch and its matmul library; contiguous inputs in multiples of 64 get the new kernels.",
    )


def partial_wave(group: Group, limits: Limits) -> Cause | None:
    """A number of tiles just above a multiple of the multiprocessors: the last wave runs nearly empty."""
    sizes, tile, count = product_sizes(group.name, group.shapes), output_tile(group.kernel), limits.multiprocessors
    if sizes is None or tile is None or not count or not limits.is_named or group.blocks_per_sm == 1:
        return None
    tiles = _tiles(sizes, tile)
    if tiles <= count or tiles / (math.ceil(tiles / count) * count) > _FULL_WAVES:
        return None
    return Cause(
        f"{tiles} tiles of {tile[0]} × {tile[1]} are {digits(tiles / count)} waves on {count} multiprocessors, the "
        "last of them mostly empty",
        "Change the batch so that the tiles of the output are just below a multiple of the multiprocessors.",
    )


def few_blocks(group: Group, limits: Limits) -> Cause | None:
    """A kernel with so few blocks that many multiprocessors have none."""
    count, blocks = limits.multiprocessors, _blocks(group.grid)
    if not count or not blocks or blocks >= _NEARLY_ALL * count:
        return None
    return Cause(
        f"the kernel has {blocks} block{'s' * (blocks > 1)} for {count} multiprocessors",
        "Give one call more to do, such as larger batches, so that every multiprocessor gets work.",
    )


def _blocks(grid: str | None) -> int:
    """The blocks of a grid; 0: not recorded."""
    try:
        sizes = json.loads(grid or "[]")
    except ValueError:
        return 0
    return math.prod(sizes) if isinstance(sizes, list) and sizes and all(isinstance(n, int) for n in sizes) else 0


def wasted_head(group: Group, _limits: Limits) -> Cause | None:
    """A head dimension that the kernel's tiles are larger than."""
    shape = _shape(group.shapes, 1 if group.name.endswith("_backward") else 0)
    size = shape[-1] if len(shape) == 4 else 0
    padded_size = _padded_head(size, group.kernel) if size else 0
    if padded_size <= size:
        return None
    return Cause(
        f"the head dimension of {size} is padded to {padded_size} in the kernel's tiles, so that "
        f"{100 * (1 - size / padded_size):.0f} % of what it computes is thrown away; that alone "
        "doesn't explain the rest",
        f"Choose a head dimension of {padded_size // 2} or {padded_size}, or try other attention kernels for it.",
    )


def _padded_head(size: int, kernel: str) -> int:
    """AOTriton's tiles have a power of two; FlashAttention 2 (static_switch.h) has more sizes."""
    if "attn_fwd" in kernel or "bwd_kernel" in kernel:
        return 1 << (size - 1).bit_length()
    if "flash" in kernel:
        return next((tile for tile in (32, 64, 96, 128, 192, 256) if tile >= size), size)
    return size


def few_heads(group: Group, limits: Limits) -> Cause | None:
    """Fewer blocks of queries than multiprocessors."""
    shape = _shape(group.shapes, 1 if group.name.endswith("_backward") else 0)
    count = limits.multiprocessors
    if len(shape) != 4 or not count:
        return None
    blocks = shape[0] * shape[1] * math.ceil(shape[2] / _TILE)
    if blocks > count / 2:
        return None
    return Cause(
        f"a batch of {shape[0]} with {shape[1]} heads and {shape[2]} queries makes about {blocks} blocks for {count} "
        "multiprocessors",
        "Attend in larger batches; for decoding, use a kernel that splits the keys (flash decoding).",
    )


def depthwise(group: Group, _limits: Limits) -> Cause | None:
    """A convolution of each channel by itself."""
    weight, image = _shape(group.shapes, 1), _shape(group.shapes, 0)
    if len(weight) < 3 or len(image) < 2 or weight[1] != 1 or image[1] == 1:
        return None
    return Cause(
        "it convolves each channel by itself (depthwise), which leaves matrix units nothing to multiply",
        "Use channels last, and let `torch.compile` generate and fuse the depthwise convolution.",
    )


def few_channels(group: Group, _limits: Limits) -> Cause | None:
    """An image with so few channels that a tile is mostly padding."""
    image = _shape(group.shapes, 0)
    if len(image) < 3 or image[1] >= 8:
        return None
    return Cause(
        f"{image[1]} input channel{'s' * (image[1] > 1)} fill{'s' * (image[1] == 1)} less than a tile of a matrix unit",
        "Pad the channels to 8, or reshape so that pixels become channels (space to depth).",
    )


def side_kernels(group: Group, _limits: Limits) -> Cause | None:
    """Time in other kernels that the operator launches: a bias, a layout change."""
    layout, elementwise = group.layout_ns / group.time_ns, group.elementwise_ns / group.time_ns
    if layout > _MUCH:
        return Cause(
            f"{100 * layout:.0f} % of the time changes the images' memory layout",
            "`model.to(memory_format=torch.channels_last)`, and the same for the images.",
        )
    if elementwise > _MUCH:
        return Cause(
            f"{100 * elementwise:.0f} % of the time is in elementwise kernels of the operator, such "
            "as the one that adds the bias",
            "Leave out the bias where a normalization follows (`bias=False`), or let `torch.compile` fuse it.",
        )
    return None


def first_channels(group: Group, _limits: Limits) -> Cause | None:
    """A convolution whose kernel works on images with the channels first."""
    if not re.search(r"(?i)nchw(?!tonhwc)", group.kernel):
        return None
    return Cause(
        "the kernel works on images with the channels first (`nchw`)",
        "`model.to(memory_format=torch.channels_last)`, and the same for the images.",
    )


def strided_inputs(group: Group, _limits: Limits) -> Cause | None:
    """PyTorch's elementwise kernel for tensors that aren't contiguous in the same order."""
    if not re.search(r"(?<!vectorized_)(?<!unrolled_)elementwise_kernel", group.kernel):
        return None
    return Cause(
        "PyTorch runs its kernel for broadcast or differently ordered inputs, which loads single elements",
        "Bring the inputs into one order and make them contiguous once, or let `torch.compile` write the kernel.",
    )


def low_occupancy(group: Group, _limits: Limits) -> Cause | None:
    """Too few threads at once to hide the memory's latency."""
    if not group.occupancy < 1 / 4:  # also: not recorded
        return None
    return Cause(
        f"the launch keeps only {100 * group.occupancy:.0f} % of a multiprocessor's threads, too few to hide the "
        "memory's latency",
        "Give one call more to do, or use a kernel with fewer registers and less shared memory per block.",
    )


_FINDERS: dict[str, tuple[Finder, ...]] = {
    "matmul": (side_kernels, few_tiles, misaligned_sizes, skinny, tiny, old_kernel, partial_wave),
    "convolution": (side_kernels, depthwise, few_channels, few_blocks, tiny, first_channels, old_kernel),
    "attention": (few_heads, tiny, wasted_head, old_kernel),
}
_OF_MEMORY: tuple[Finder, ...] = (few_blocks, tiny, strided_inputs, low_occupancy)


def cause_of(group: Group, limits: Limits) -> tuple[str, Cause] | None:
    """(its kind, the first cause that the shapes and kernel names of a group show); None: they show none."""
    finders = _FINDERS.get(group.family, _OF_MEMORY)
    return next(((finder.__name__, cause) for finder in finders if (cause := finder(group, limits))), None)


def _shape(shapes: str | None, position: int) -> list[int]:
    try:
        entries = json.loads(shapes or "[]")
    except (ValueError, RecursionError):
        return []
    sizes = entries[position] if isinstance(entries, list) and position < len(entries) else []
    return sizes if isinstance(sizes, list) and all(isinstance(n, int) for n in sizes) else []
