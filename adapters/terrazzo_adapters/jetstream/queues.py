"""``JetStreamQueues``: a stream of queues, of which each has a key and all have one order."""

from __future__ import annotations

from collections.abc import Sequence

from terrazzo.ports.stream import Logged, LogState
from terrazzo_adapters.jetstream.connection import Connection
from terrazzo_adapters.jetstream.key_stream import KeyStream
from terrazzo_adapters.jetstream.reader import StreamReader


class JetStreamQueues:
    """``QueueLog`` in a ``KeyStream``, whose parameters it has: each key's messages are a queue."""

    def __init__(self, connection: Connection, kind: str, *, most_bytes: int, room: str) -> None:
        self._stream = KeyStream(connection, kind, most_bytes=most_bytes, room=room)

    async def open(self) -> None:
        """Makes the stream where there is none; raises as ``JetStreamLog.open``."""
        await self._stream.open(max_msgs_per_subject=-1)

    async def state(self) -> LogState:
        """As the stream's leader knows it; raises as ``KeyStream.state``."""
        return await self._stream.state()

    async def append(self, key: Sequence[str], body: bytes, *, message_id: str) -> int:
        """Appends a message to a queue; its number."""
        return await self._stream.publish(key, body, {"Nats-Msg-Id": message_id})

    async def find(self, sequence: int) -> Logged | None:
        """A message by its number; None: it is not there any more."""
        return await self._stream.at(sequence)

    def read(self, after: int, created: str) -> StreamReader:
        """Reads what comes after a message; what was removed meanwhile is left out."""
        return self._stream.read(after, created)

    async def purge(self, key: Sequence[str], *, before: int = 0) -> None:
        """Removes a queue's messages, those with smaller numbers than ``before`` if it is given."""
        await self._stream.purge(key, before=before)
