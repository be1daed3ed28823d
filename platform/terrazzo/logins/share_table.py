"""A bounded table that strangers write into: each share of it (an address, a company) has its own part. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ShareTable(Generic[S, K, V]):
    """Values by share and key. A full share loses its own oldest value, a full table one of the share with most.

    Whoever writes much pushes out what is its own, and never the last value of another, unless very many shares do it
    together. Each step takes the same time, however full it is.

    Args:
        most: values in all.
        most_of_share: values of one share.
    """

    def __init__(self, *, most: int, most_of_share: int) -> None:
        self._most = most
        self._most_of_share = most_of_share
        self._size = 0
        self._shares: dict[S, OrderedDict[K, V]] = {}
        self._by_size: list[OrderedDict[S, None] | None] = [None] * (most_of_share + 2)  # made when one has that many

    def __len__(self) -> int:
        """How many values there are."""
        return self._size

    def get(self, share: S, key: K) -> V | None:
        """The value there; None where there is none."""
        part = self._shares.get(share)
        return None if part is None else part.get(key)

    def put(self, share: S, key: K, value: V) -> None:
        """Sets a value, which is the newest of its share then."""
        part = self._shares.setdefault(share, OrderedDict())
        before = len(part)
        part[key] = value
        part.move_to_end(key)
        self._resize(share, before, len(part))
        if len(part) > self._most_of_share:
            self._pop(share)
        elif self._size > self._most:
            self._pop(self._largest())

    def values(self) -> Iterator[tuple[S, K, V]]:
        """All of them, with their shares and keys."""
        for share, part in self._shares.items():
            for key, value in part.items():
                yield share, key, value

    def _largest(self) -> S:
        """The share with most values; of several the one that was written to longest ago."""
        fullest = next(shares for shares in reversed(self._by_size) if shares)
        return next(iter(fullest))

    def _pop(self, share: S) -> None:
        part = self._shares[share]
        before = len(part)
        part.popitem(last=False)
        self._resize(share, before, before - 1)

    def _resize(self, share: S, before: int, after: int) -> None:
        self._size += after - before
        if before and (equal := self._by_size[before]) is not None:
            equal.pop(share, None)
        if not after:
            del self._shares[share]
            return
        equal = self._by_size[after]
        if equal is None:
            equal = self._by_size[after] = OrderedDict()
        equal[share] = None
