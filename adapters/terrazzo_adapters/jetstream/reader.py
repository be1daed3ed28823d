"""``StreamReader``: frames of a stream in order, by number, through a consumer that is made anew when it is lost."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nats import errors

from terrazzo.ports.stream import Logged, LogState, LogUnavailable, LogUnusable, LogWentBack
from terrazzo_adapters.jetstream.connection import Connection, Refused, next_message

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

_DEPTH = 16  # frames that are asked for at once: what may wait here
_EXPIRES_S = 2.0  # of a request for frames
_SILENT_S = 6.0  # without frames or a status: the consumer is lost
_FORGOTTEN_S = 30.0  # the servers forget a consumer that nobody asks


class StreamReader:
    """``LogReader``: asks for a few frames at a time, so that a slow reader holds no more than these."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        *,
        after: int,
        created: str,
        state: Callable[[], Awaitable[LogState]],
        is_keyed: bool = False,
        key_of: Callable[[str], tuple[str, ...]] = lambda subject: (),
    ) -> None:
        """``is_keyed``: of each subject the newest frame alone is there, so that numbers are left out; ``key_of``: what
        a subject stands for."""
        self._connection = connection
        self._stream = stream
        self._after = after
        self._created = created
        self._state = state
        self._is_keyed = is_keyed
        self._key_of = key_of
        self._received = 0  # frames of this consumer
        self._consumer = ""
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._asked = 0  # frames that may still come of what was asked for
        self._heard_s = 0.0
        self._connects = 0  # of the connection, when the consumer was made

    async def next(self, wait_s: float) -> list[Logged]:
        """The frames that are there, or the first that comes within ``wait_s``; see ``LogReader``."""
        try:
            if self._connects != self._connection.stats.connects:  # a server that died has forgotten what was asked
                await self._end()
            if self._subscription is None:
                await self._begin()
            return await self._collect(wait_s)
        except (LogUnavailable, LogWentBack):
            await self._end()
            raise

    async def close(self) -> None:
        """Ends it; the servers forget the consumer by themselves."""
        await self._end()

    async def _begin(self) -> None:
        """Makes a consumer that begins behind the last frame, if the log is still the same."""
        check_log(await self._state(), after=self._after, created=self._created, is_keyed=self._is_keyed)
        self._consumer = f"r{secrets.token_hex(8)}"
        config = {
            "name": self._consumer,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._after + 1,
            "ack_policy": "none",
            "inactive_threshold": int(_FORGOTTEN_S * 1e9),
            "mem_storage": True,
            "num_replicas": 1,
        }
        subject = f"CONSUMER.CREATE.{self._stream}.{self._consumer}"
        try:
            await self._connection.ask(subject, {"stream_name": self._stream, "config": config})
        except Refused as error:
            raise LogUnusable(f"stream.url: {error}") from None
        self._inbox = self._connection.new_inbox()
        self._subscription = await self._connection.subscribe(self._inbox)
        self._connection.stats.readers += 1
        self._connects = self._connection.stats.connects
        self._asked = self._received = 0
        self._heard_s = asyncio.get_running_loop().time()

    async def _end(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            try:
                await subscription.unsubscribe()
            except (errors.Error, OSError):
                return  # the connection is gone, and the subscription with it

    async def _collect(self, wait_s: float) -> list[Logged]:
        found: list[Logged] = []
        ends_s = asyncio.get_running_loop().time() + wait_s
        while not found or self._has_more:
            try:
                if self._asked <= _DEPTH // 2:
                    await self._ask_for_more()
                message = await self._receive(ends_s)
                logged = None if message is None else self._take(message)
                if message is None and not found:
                    self._check_heard()
            except LogUnavailable:
                if not found:
                    raise
                await self._end()  # what was read before is not read again: it is the caller's
                return found
            if logged is not None:
                found.append(logged)
            elif message is None:
                return found
        return found

    @property
    def _has_more(self) -> bool:
        return self._subscription is not None and self._subscription.pending_msgs > 0

    async def _ask_for_more(self) -> None:
        count = _DEPTH - self._asked
        body = {"batch": count, "expires": int(_EXPIRES_S * 1e9)}
        await self._connection.tell(f"CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}", body, reply=self._inbox)
        self._asked += count

    async def _receive(self, ends_s: float) -> Msg | None:
        assert self._subscription is not None  # begun
        left_s = ends_s - asyncio.get_running_loop().time()
        try:
            return await next_message(self._subscription, max(left_s, 0.001))
        except TimeoutError:
            return None
        except errors.Error as error:
            raise LogUnavailable(f"the log's frames: {error}") from None

    def _take(self, message: Msg) -> Logged | None:
        """A frame; None for a status, which says how many of the frames that were asked for won't come."""
        self._heard_s = asyncio.get_running_loop().time()
        headers = message.headers or {}
        status = headers.get("Status")
        if status is not None and not message.data:
            if status in ("408", "404"):
                self._asked = max(0, self._asked - int(headers.get("Nats-Pending-Messages", self._asked)))
                return None
            raise LogUnavailable(f"the log's frames: {headers.get('Description', '')} ({status})")
        self._asked = max(0, self._asked - 1)
        sequence = message.metadata.sequence.stream
        self._received += 1
        if self._is_keyed and message.metadata.sequence.consumer != self._received:
            raise LogUnavailable("the log's frames: one was lost on its way")
        if not self._is_keyed and sequence != self._after + 1:
            raise LogWentBack(_gap(self._after + 1, sequence))
        self._after = sequence
        self._connection.stats.read += 1
        return Logged(sequence, message.data, headers.get("Nats-Msg-Id", ""), self._key_of(message.subject))

    def _check_heard(self) -> None:
        silent_s = asyncio.get_running_loop().time() - self._heard_s
        if silent_s > _SILENT_S:
            raise LogUnavailable(f"the log's frames: nothing was heard for {silent_s:.0f} s")


def check_log(state: LogState, *, after: int, created: str, is_keyed: bool = False) -> None:
    """Refuses a log that is not the one that was read as far as ``after``.

    Raises:
        LogWentBack: says what to do.
    """
    if state.created != created:
        raise LogWentBack(
            f"the log was made at {state.created}, and the one that this node follows at {created}: it was deleted or"
            " is another one; docs/scaling.md says what to do"
        )
    if state.last < after:
        raise LogWentBack(
            f"the log's last frame is {state.last}, and this node has {after} already: the log has lost frames;"
            " docs/scaling.md says what to do"
        )
    if state.first > after + 1 and not is_keyed:
        raise LogWentBack(_gap(after + 1, state.first))


def _gap(wanted: int, found: int) -> str:
    return (
        f"the log begins at frame {found}, and this node needs {wanted}: it was away for too long; fill its data folder"
        " from another node's backup, as docs/scaling.md says"
    )
