"""Iterates over the entries of a database or a snapshot in the order of their keys, ascending or descending.

The iterators check their ends themselves: in rocksdict 0.3 a bound given with ``ReadOptions`` points to freed memory
once the options object is gone, and ``set_iterate_lower_bound`` sets the upper one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import cast

from rocksdict import Rdict, Snapshot

View = Rdict | Snapshot
"""What can be read: a database, or a snapshot of it."""


def ascending(view: View, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries with ``start <= key < end``, in order."""
    for entry in cast("Iterator[tuple[bytes, bytes]]", view.items(from_key=start)):
        if entry[0] >= end:
            return
        yield entry


def ascending_keys(view: View, start: bytes, end: bytes) -> Iterator[bytes]:
    """The keys with ``start <= key < end``, in order."""
    keys = cast("Iterator[bytes]", view.keys(from_key=start))
    return takewhile(end.__gt__, keys)


def descending(view: View, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries with ``start >= key >= end``, from ``start`` downwards."""
    for entry in cast("Iterator[tuple[bytes, bytes]]", view.items(backwards=True, from_key=start)):
        if entry[0] < end:
            return
        yield entry
