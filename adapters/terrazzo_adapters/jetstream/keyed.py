"""``JetStreamKeyed``: a stream that keeps the newest message of each key, in one order for all who read it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from terrazzo.ports.stream import Logged, LogState
from terrazzo_adapters.jetstream.connection import Connection
from terrazzo_adapters.jetstream.key_stream import KeyStream
from terrazzo_adapters.jetstream.reader import StreamReader


class JetStreamKeyed:
    """``StateLog`` in a ``KeyStream``, whose parameters it has: of each key the newest message is kept."""

    def __init__(self, connection: Connection, kind: str, *, most_bytes: int, room: str) -> None:
        self._stream = KeyStream(connection, kind, most_bytes=most_bytes, room=room)

    async def open(self) -> None:
        """Makes the stream where there is none; raises as ``JetStreamLog.open``."""
        await self._stream.open(max_msgs_per_subject=1, allow_msg_ttl=True)

    async def state(self) -> LogState:
        """As the stream's leader knows it; raises as ``KeyStream.state``."""
        return await self._stream.state()

    async def put(self, key: Sequence[str], body: bytes, *, message_id: str, lasts_s: float = 0.0) -> int:
        """Sets a key's message, for good or so many seconds; its number."""
        return await self._stream.publish(key, body, {"Nats-Msg-Id": message_id} | _ends_after(lasts_s))

    async def replace(
        self, key: Sequence[str], body: bytes, *, last: int, message_id: str, lasts_s: float = 0.0
    ) -> int:
        """``put``, where the present message has the number ``last``."""
        headers = {"Nats-Msg-Id": message_id, "Nats-Expected-Last-Subject-Sequence": str(last)}
        return await self._stream.publish(key, body, headers | _ends_after(lasts_s))

    async def get(self, key: Sequence[str]) -> Logged | None:
        """A key's present message; None: there is none."""
        return await self._stream.last(key)

    def read(self, after: int, created: str) -> StreamReader:
        """Reads what comes after a message; what was replaced meanwhile is left out."""
        return self._stream.read(after, created)


def _ends_after(lasts_s: float) -> dict[str, str]:
    return {"Nats-TTL": f"{ceil(lasts_s)}s"} if lasts_s else {}
