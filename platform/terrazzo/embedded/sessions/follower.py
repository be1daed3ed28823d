"""``StreamFollower``: reads a stream from its beginning on, and anew where it was made anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.stream import Logged, LogReader, LogState, LogUnavailable, LogUnusable, LogWentBack
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.1, most_s=2.0)
_WAIT_S = 0.5


class FollowedLog(Protocol):
    """A log that is followed."""

    async def open(self) -> None:
        """Makes it where there is none."""

    async def state(self) -> LogState:
        """As the log's leader knows it."""
        ...

    def read(self, after: int, created: str) -> LogReader:
        """Reads what comes after a message."""
        ...


class StreamFollower:
    """Follows one stream.

    Args:
        on_message: is told of each message.
        on_reset: is told that the stream was made anew: nothing that was read before counts.
        again: how often what was to be put into it had no answer: then it may be gone.
        may_do_without: where it can't be made, nothing is read, until it can.
    """

    def __init__(
        self,
        log: FollowedLog,
        on_message: Callable[[Logged], None],
        on_reset: Callable[[], None],
        *,
        again: Callable[[], int],
        may_do_without: bool,
    ) -> None:
        self.loaded = asyncio.Event()
        """Is set when all is read that was there at the start."""
        self._log = log
        self._on_message = on_message
        self._on_reset = on_reset
        self._again = again
        self._may_do_without = may_do_without
        self._created = ""
        self._position = 0
        self._failure_log = SparseLog(_log)

    async def follow(self) -> None:
        """Reads until it is cancelled."""
        attempts = Attempts(_AGAIN)
        while True:
            try:
                await self._log.open()
                await self._follow(attempts)
            except LogWentBack as error:
                _log.warning("sessions are read from their beginning: %s", error)
                self._created = ""
            except (LogUnavailable, LogUnusable) as error:
                self._failure_log.warning("sessions of all nodes: %s", error)
                if self._may_do_without and isinstance(error, LogUnusable):
                    self.loaded.set()
            await asyncio.sleep(attempts.failed() or 0)

    async def _follow(self, attempts: Attempts) -> None:
        state = await self._log.state()
        if state.created != self._created:
            if self._created or self._position:
                self._on_reset()
            self._created, self._position = state.created, 0
        reader, pauses, again = self._log.read(self._position, self._created), LoopPauses(), self._again()
        try:
            while True:
                if self._again() != again:
                    again = self._again()
                    await self._log.state()
                if self._position >= state.last:
                    self.loaded.set()
                found = await reader.next(_WAIT_S)
                attempts.succeeded()
                for logged in found:
                    self._position = logged.sequence
                    self._on_message(logged)
                    await pauses.pause()
                if not found:  # what was last has run out, or was removed
                    self._position = max(self._position, state.last)
        finally:
            await reader.close()
