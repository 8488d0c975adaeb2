"""Entries taken apart, changed and put together again, with checksums that fit: as somebody would make them up."""

import json
import struct
import zlib

import zstandard

from support.fuzzing import ODD_VALUES, damaged

TAIL = struct.Struct("<QI18s")
LENGTHS = (0, 1, -1, 17, 63, 2**16, 2**31 - 1, 2**31, 2**32, 40 << 30, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63))
NUMBERS = (0, 1, -1, 127, -128, 2**15, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63))


def parts(data):
    """(magic, head, blocks as they are unpacked)."""
    length, _, magic = TAIL.unpack(data[-TAIL.size :])
    head = json.loads(data[-TAIL.size - length : -TAIL.size])
    blocks = []
    for start, stored, size, _ in head["blocks"]:
        block = data[start : start + stored]
        unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(block) if stored < size else block
        blocks.append(bytearray(unpacked))
    return magic, head, blocks


def whole(magic, head, blocks, change_places=lambda places: None):
    """The bytes of an entry with these blocks, aligned and not packed."""
    data, places = bytearray(magic), []
    for block in blocks:
        data += bytes(-len(data) % 64)
        places.append([len(data), len(block), len(block), zlib.crc32(block)])
        data += block
    change_places(places)
    text = json.dumps({**head, "blocks": places}).encode()
    return bytes(data) + text + TAIL.pack(len(text), zlib.crc32(text), magic)


def with_head(data, change):
    """The entry with another text as its head."""
    length, _, magic = TAIL.unpack(data[-TAIL.size :])
    text = change(data[-TAIL.size - length : -TAIL.size])
    return data[: -TAIL.size - length] + text + TAIL.pack(len(text), zlib.crc32(text), magic)


def fields_of(value, found=None):
    """(holder, key) of everything in a JSON value."""
    found = [] if found is None else found
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        fields_of(value[key], found)
    return found


def change_a_field(value, numbers, spared=()):
    """Put something odd in the place of a field, take it away, or another one's value."""
    fields = [(holder, key) for holder, key in fields_of(value) if key not in spared]
    holder, key = numbers.choice(fields)
    kind = numbers.randrange(5)
    if kind == 0 and isinstance(holder, dict):
        del holder[key]
    elif kind == 1:
        other, place = numbers.choice(fields)
        holder[key] = json.loads(json.dumps(other[place]))
    else:
        holder[key] = numbers.choice(ODD_VALUES if kind < 4 else LENGTHS)


def change_a_number(blocks, numbers):
    """Write some numbers of some width somewhere into a block."""
    block = numbers.choice([block for block in blocks if block])
    for _ in range(numbers.choice((1, 1, 3, 50))):
        width = numbers.choice((1, 1, 2, 4, 8))
        at = numbers.randrange(max(1, len(block) // width)) * width
        block[at : at + width] = (numbers.choice(NUMBERS) % 2 ** (8 * width)).to_bytes(width, "little")[
            : len(block) - at
        ]


def made_up(data, numbers, spared=("source",)):
    """An entry that was changed in one of many ways."""
    kind = numbers.randrange(8)
    if kind == 0:
        return damaged(data, numbers)
    if kind == 1:
        return with_head(data, lambda text: damaged(text, numbers))
    if kind == 2:
        depth = numbers.choice((150, 250, 5000, 100_000))
        opening, closing = numbers.choice((("[", "]"), ('{"a":', "}")))
        nested = opening * depth + "1" + closing * depth * numbers.randrange(2)
        return with_head(data, lambda text: text[:-1] + f', "x": {nested}}}'.encode())
    magic, head, blocks = parts(data)
    places = lambda found: None  # noqa: E731
    if kind in (3, 4):
        for _ in range(numbers.choice((1, 1, 2))):
            change_a_field(head, numbers, (*spared, "blocks"))
    elif kind == 5:
        places = lambda found: change_a_field(found, numbers)  # noqa: E731
    else:
        for _ in range(numbers.choice((1, 1, 4))):
            change_a_number(blocks, numbers)
    return whole(magic, head, blocks, places)
