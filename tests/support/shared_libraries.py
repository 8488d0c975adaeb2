"""What a shared library says of itself, for the systems that wheels are made for: ELF, Mach-O and PE, 64-bit only."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ELF_MACHINES = {62: "x86_64", 183: "arm64"}  # elf.h: EM_X86_64, EM_AARCH64
MACH_O_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}  # mach/machine.h: CPU_TYPE_X86_64, CPU_TYPE_ARM64
PE_MACHINES = {0x8664: "x86_64", 0xAA64: "arm64"}  # PE format: IMAGE_FILE_MACHINE_AMD64, …_ARM64


@dataclass(frozen=True)
class SharedLibrary:
    """A library's file.

    Args:
        file_format: "ELF", "Mach-O" or "PE".
        machine: "x86_64" or "arm64".
        exports: What it defines for others.
        undefined: What others must define.
        needs: The libraries that it names.
    """

    file_format: str
    machine: str
    exports: frozenset[str]
    undefined: frozenset[str]
    needs: tuple[str, ...]


def parse_library(data: bytes) -> SharedLibrary:
    """Read the file's tables."""
    parsers = {b"\x7fELF": _parse_elf, b"\xcf\xfa\xed\xfe": _parse_mach_o}
    return parsers.get(data[:4], _parse_pe)(data)


def _records(data: bytes, layout: str, start: int, count: int) -> Iterator[tuple[Any, ...]]:
    return struct.iter_unpack(layout, data[start : start + count * struct.calcsize(layout)])


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode("ascii")


def _parse_elf(data: bytes) -> SharedLibrary:
    """elf.h: Elf64_Ehdr, Elf64_Shdr, Elf64_Sym, Elf64_Dyn."""
    (machine,), (sections_at,), (count,) = (
        struct.unpack_from(layout, data, at) for layout, at in (("<H", 18), ("<Q", 40), ("<H", 60))
    )
    sections = list(_records(data, "<IIQQQQIIQQ", sections_at, count))
    exports, undefined, needs = set(), set(), []
    for _name, kind, _flags, _address, start, size, link, _info, _align, _entry in sections:
        texts = sections[link][4] if link < count else 0
        if kind == 11:  # SHT_DYNSYM
            for name, _info, _other, section, _value, _size in _records(data, "<IBBHQQ", start + 24, size // 24 - 1):
                (exports if section else undefined).add(_text(data, texts + name))
        elif kind == 6:  # SHT_DYNAMIC
            needs += [_text(data, texts + value) for tag, value in _records(data, "<qQ", start, size // 16) if tag == 1]
    return SharedLibrary("ELF", ELF_MACHINES[machine], frozenset(exports), frozenset(undefined), tuple(needs))


def _parse_mach_o(data: bytes) -> SharedLibrary:
    """mach-o/loader.h: mach_header_64, symtab_command, dylib_command; mach-o/nlist.h."""
    _magic, machine, _sub, file_type, count, _size, _flags, _reserved = struct.unpack_from("<8I", data)
    assert file_type == 6  # MH_DYLIB
    exports, undefined, needs, at = set(), set(), [], 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command == 2:  # LC_SYMTAB
            symbols_at, symbols, texts, _texts_size = struct.unpack_from("<4I", data, at + 8)
            for name, kind, _section, _description, _value in _records(data, "<IBBHQ", symbols_at, symbols):
                if kind & 0x01:  # N_EXT
                    (exports if kind & 0x0E else undefined).add(_text(data, texts + name).removeprefix("_"))
        elif command == 12:  # LC_LOAD_DYLIB
            needs.append(_text(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        at += size
    machine_name = MACH_O_MACHINES[machine]
    return SharedLibrary("Mach-O", machine_name, frozenset(exports), frozenset(undefined), tuple(needs))


def _parse_pe(data: bytes) -> SharedLibrary:
    """PE format: COFF file header, optional header PE32+, section table, export and import directory tables."""
    (header,) = struct.unpack_from("<I", data, 0x3C)
    assert data[:2] == b"MZ"
    assert data[header : header + 4] == b"PE\0\0"
    machine, sections, _time, _symbols, _count, size, flags = struct.unpack_from("<HHIIIHH", data, header + 4)
    assert flags & 0x2000  # IMAGE_FILE_DLL
    optional = header + 24
    table = list(_records(data, "<8sIIIIIIHHI", optional + size, sections))

    def place(address: int) -> int:
        start, file_start = next((row[2], row[4]) for row in table if row[2] <= address < row[2] + max(row[1], row[3]))
        return address - start + file_start

    (exports_at, _), (imports_at, _) = _records(data, "<II", optional + 112, 2)
    count, _functions, names_at = struct.unpack_from("<III", data, place(exports_at) + 24)
    names = [_text(data, place(name)) for (name,) in _records(data, "<I", place(names_at), count)]
    needs = []
    if imports_at:
        for row in _records(data, "<5I", place(imports_at), 64):
            if not row[3]:
                break
            needs.append(_text(data, place(row[3])))
    return SharedLibrary("PE", PE_MACHINES[machine], frozenset(names), frozenset(), tuple(needs))
