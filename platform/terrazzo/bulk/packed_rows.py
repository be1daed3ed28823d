"""The rows of a file until they are written: as some hundred pieces of bytes.

As objects a row is a dozen small ones, which lie between what others allocate meanwhile: of 70 MB for 100,000 rows 60
stayed with the process, as each megabyte of the interpreter's had something in it that lives on.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from itertools import chain
from typing import Any

from terrazzo.bulk.rows import SourceRow

PIECE_ROWS = 500
_PIECE_CHARACTERS = 256 * 1024


class PackedRows:
    """Takes rows one by one, and gives them back in pieces, in their order, as often as they are asked for.

    A piece has at most ``PIECE_ROWS`` rows, and fewer of long ones: it is packed and unpacked in a millisecond.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._last: list[tuple[Any, ...]] = []  # those that are no piece yet
        self._last_characters = 0
        self._count = 0

    def append(self, source: SourceRow) -> None:
        """Takes the next row; its values are what JSON has."""
        number, values, surplus = source
        self._last.append((number, dict(values), surplus))
        self._last_characters += sum(map(_characters, values.values()))
        self._count += 1
        if len(self._last) >= PIECE_ROWS or self._last_characters >= _PIECE_CHARACTERS:
            self._packed.append(marshal.dumps(self._last))
            self._last, self._last_characters = [], 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SourceRow]:
        return chain.from_iterable(self.pieces())

    def pieces(self) -> Iterator[list[SourceRow]]:
        """Some rows at a time, made anew each time."""
        for packed in self._packed:
            yield list(map(SourceRow._make, marshal.loads(packed)))  # our own  # nosec B302
        if self._last:
            yield list(map(SourceRow._make, self._last))


def _characters(value: Any) -> int:
    if isinstance(value, dict | list):
        return len(marshal.dumps(value))
    return len(value) if isinstance(value, str) else 1
