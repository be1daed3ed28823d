"""What bridges brought of companies whose reports are not taken at present: it waits, and isn't acknowledged.

A bridge stops reading when too much of what it brought waits. Where it connects anew meanwhile, the remote broker sends
the same again: beyond a bound what waits of that bridge is forgotten, and its connection ended once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from terrazzo_broker.hooks import Batch

_MOST = 4_000  # of a bridge and a company; of one connection a bridge has 1,000, or 16 MiB, at most
_MOST_BYTES = 48 << 20


class _Waiting:
    """What waits of one bridge and company, and the bytes of its payloads."""

    __slots__ = ("batches", "size")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.size = 0


class HeldReports:
    """Between bridges and the ingest.

    Args:
        take: of the ingest.
        cut: ends a bridge's connection, by its client id; it makes another one.
    """

    def __init__(self, take: Callable[[Batch], None], cut: Callable[[str], object]) -> None:
        self.forgotten = 0
        """Reports that waited, were not acknowledged, and have to be sent again."""
        self._take = take
        self._cut = cut
        self._owners: frozenset[str] = frozenset()
        self._waiting: dict[tuple[str, str], _Waiting] = {}  # by owner and client id

    def take(self, batch: Batch) -> None:
        """Hands a batch on, now or when its owner's are taken again."""
        client = batch.client
        if client.owner not in self._owners:
            self._take(batch)
            return
        waiting = self._waiting.setdefault((client.owner, client.client_id), _Waiting())
        waiting.batches.append(batch)
        waiting.size += sum(len(each.payload) for each in batch.messages)
        if len(waiting.batches) > _MOST or waiting.size > _MOST_BYTES:
            self.forgotten += len(self._waiting.pop((client.owner, client.client_id)).batches)
            self._cut(client.client_id)

    def hold_owners(self, owners: Collection[str]) -> None:
        """Keeps these owners' reports from now on, and hands on what waits of others."""
        self._owners = frozenset(owners)
        for key in [each for each in self._waiting if each[0] not in self._owners]:
            for batch in self._waiting.pop(key).batches:
                self._take(batch)
