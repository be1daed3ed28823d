"""Notes in a key-value database: values by name, under keys that begin with ``t``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from rocksdict import WriteBatch

from terrazzo_adapters.keyvalue.long_values import packed, unpacked
from terrazzo_adapters.keyvalue.walk import View, ascending


def note_key(name: str) -> bytes:
    """The key of a note.

    Raises:
        ValueError: the name can't be UTF-8 (a lone surrogate).
    """
    return b"t" + name.encode()


def noted(notes: Mapping[str, bytes | None]) -> dict[bytes, bytes | None]:
    """Notes as they are stored: by their keys, long ones shortened.

    Raises:
        ValueError: as ``note_key``.
    """
    return {note_key(name): None if value is None else packed(value) for name, value in notes.items()}


def put_notes(batch: WriteBatch, notes: Mapping[bytes, bytes | None]) -> None:
    """Adds notes to a batch as they are stored (``noted``); None deletes one."""
    for key, value in notes.items():
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)


def read_notes(view: View, prefix: str) -> dict[str, bytes]:
    """The notes whose names start with ``prefix``, sorted by name."""
    start = note_key(prefix)
    entries = takewhile(lambda entry: entry[0].startswith(start), ascending(view, start, b"u"))
    return {key[1:].decode(): unpacked(value) for key, value in entries}
