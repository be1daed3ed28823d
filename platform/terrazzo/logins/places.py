"""Where users and terminals are known to come from: the addresses at which their credentials were proven.

The file has a line ``<record id> <epoch> <share>`` for each new place, and ``<record id>`` alone where all were
forgotten. Ids are given once, so that a record of the same name that is made later knows no place of the former.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from terrazzo.line_file import LineFile

MOST_PLACES = 8  # of one principal; the one that was proven longest ago makes room


class Principal(NamedTuple):
    """Whoever a login claims to be."""

    name: str  # as it was given
    record_id: int = 0  # 0: nobody has that name
    epoch: int = 0  # of its credentials: another one has proven nothing yet


class _Places(NamedTuple):
    epoch: int
    shares: OrderedDict[str, None]  # the one proven last is last


class KnownPlaces:
    """The shares of addresses (``share_of``) by principal; kept in ``path``, if given.

    Args:
        path: the file.
        epoch_of: the present epoch of a record's credentials, None for a record that is gone. What the file says of
            others was true while the platform didn't look, and is dropped.
    """

    def __init__(self, path: Path | None = None, *, epoch_of: Callable[[int], int | None] = lambda _id: 0) -> None:
        self._places: dict[int, _Places] = {}
        self._file = None if path is None else LineFile(path, "a restart would forget where logins come from")
        if self._file is None:
            return
        for line in self._file.load():
            self._read(line)
        self._places = {each: known for each, known in self._places.items() if epoch_of(each) == known.epoch}
        self._file.rewrite(self._lines())

    def has(self, principal: Principal, share: str) -> bool:
        """Whether the principal has proven itself there, with the credentials that it has now."""
        known = self._places.get(principal.record_id)
        return known is not None and known.epoch == principal.epoch and share in known.shares

    def shares_of(self, record_id: int) -> list[str]:
        """Where a record is known to come from."""
        known = self._places.get(record_id)
        return [] if known is None else list(known.shares)

    def add(self, principal: Principal, share: str) -> None:
        """The principal has proven itself there."""
        if self._add(principal.record_id, principal.epoch, share) and self._file is not None:
            self._file.append(f"{principal.record_id} {principal.epoch} {share}", self._lines)

    def forget(self, record_id: int) -> None:
        """Forgets the places of a record that was deleted, or has other credentials."""
        if self._places.pop(record_id, None) is not None and self._file is not None:
            self._file.append(str(record_id), self._lines)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _add(self, record_id: int, epoch: int, share: str) -> bool:
        """Notes a place; whether it was unknown so far."""
        known = self._places.get(record_id)
        if known is None or known.epoch != epoch:
            known = self._places[record_id] = _Places(epoch, OrderedDict())
        is_new = share not in known.shares
        known.shares[share] = None
        known.shares.move_to_end(share)
        if len(known.shares) > MOST_PLACES:
            known.shares.popitem(last=False)
        return is_new

    def _read(self, line: str) -> None:
        record_id, *rest = line.split(" ")
        if not record_id.isdecimal():
            return
        if not rest:
            self._places.pop(int(record_id), None)
        elif len(rest) == 2 and rest[0].isdecimal() and rest[1]:
            self._add(int(record_id), int(rest[0]), rest[1])

    def _lines(self) -> Iterator[str]:
        places = [(record_id, known.epoch, list(known.shares)) for record_id, known in self._places.items()]
        return (f"{record_id} {epoch} {share}" for record_id, epoch, shares in places for share in shares)
