"""The texts of StringIds by their numbers: only those that rows refer to are read, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ...filesystem import DamagedDatabase, Database, Table
from ..scan.scanner import MISSING
from .scan import Cells, page_groups, read_cells

_COLUMNS = ("id", "value")
_SPILLED = -1


class Strings:
    """The texts of a database.

    Args:
        database: The file.
        table: Its table StringIds.
        on_damage: Called with what is wrong, if some texts can't be read.
    """

    def __init__(self, database: Database, table: Table, on_damage: Callable[[str], None]) -> None:
        self._database, self._table, self._on_damage = database, table, on_damage
        self._texts: dict[int, str] = {}
        self._visited = bytearray(database.pages + 1)
        parts = [np.empty((3, 0), np.int64)]
        for pages in page_groups(database.row_pages(table.root, on_damage)):
            cells = read_cells(database, table, _COLUMNS, pages)
            if cells.damaged:
                on_damage(f"page {cells.damaged[0]} can't be read")
            parts.append(_positions(cells))
        places_of = np.concatenate(parts, axis=1)
        self._number, self._begin, self._bytes = places_of[:, np.argsort(places_of[0], kind="stable")]

    def texts(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """The texts of some numbers; without those that have none."""
        valid = [number for number in numbers if number != MISSING]
        missing = np.array([number for number in valid if number not in self._texts], np.int64)
        after = np.searchsorted(self._number, missing, "right")  # the last of several
        for number, at in zip(missing.tolist(), (after - 1).tolist(), strict=True):
            text = self._text(at) if at >= 0 and self._number[at] == number else None
            if text is not None:
                self._texts[number] = text
        return {number: self._texts[number] for number in valid if number in self._texts}

    def _text(self, at: int) -> str | None:
        begin, size = int(self._begin[at]), int(self._bytes[at])
        if size != _SPILLED:
            return self._database.bytes_at(begin, size).decode(self._database.encoding, "replace")
        number, offset = divmod(begin, self._database.page_bytes)
        try:
            page = self._database.page(number + 1)
            row = self._database.row_at(self._table, page, offset, self._visited)
        except DamagedDatabase as error:
            self._on_damage(str(error))
            return None
        value = dict(zip(self._table.columns, row, strict=False)).get("value")
        return value if isinstance(value, str) else None


def _positions(cells: Cells) -> NDArray[np.int64]:
    """The number of each text, where it begins in the file, and its length; of a spilled row, where the row begins."""
    number, is_text = cells.integers(0), cells.is_text(1) & ~cells.is_spilled
    begin = cells.file_offsets(np.where(is_text, cells.values[1], cells.place))
    positions = np.stack([number, begin, np.where(is_text, cells.text_bytes(1), _SPILLED)])
    return positions[:, (is_text | cells.is_spilled) & (number != MISSING)]
