"""A batch of publishes that is acknowledged no earlier than others beside the store have it, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from terrazzo_broker.hooks import Batch

WhenDone = Callable[[Callable[[], None]], None]
"""Has a function called once, when what was handed over so far is kept there."""


class BatchHolder(Protocol):
    """Who has to have what is published before it is acknowledged."""

    def hold(self, batch: Batch) -> Batch:
        """The batch, or one in its place that is settled later."""


class HeldBatch:
    """The batch, settled when the store has it and each of ``others`` has called back."""

    __slots__ = ("_batch", "_refusals", "_waits_for", "arrived_us", "client", "messages")

    def __init__(self, batch: Batch, others: Sequence[WhenDone]) -> None:
        self.client = batch.client
        self.messages = batch.messages
        self.arrived_us = batch.arrived_us
        self._batch = batch
        self._refusals: Mapping[int, int] | None = None
        self._waits_for = 1 + len(others)
        for when_done in others:
            when_done(self._have_one_less)

    def settle(self, refusals: Mapping[int, int] | None = None) -> None:
        """The ingest calls this when the batch is stored; others may not have it yet."""
        self._refusals = refusals
        self._have_one_less()

    def hold(self) -> None:
        """Stops reading from the connection."""
        self._batch.hold()

    def release(self) -> None:
        """Reads from the connection again."""
        self._batch.release()

    def _have_one_less(self) -> None:
        self._waits_for -= 1
        if not self._waits_for:
            self._batch.settle(self._refusals)
