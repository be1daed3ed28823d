"""``JetStreamKeyed``: a stream that keeps the newest message of each key, in one order for all who read it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from terrazzo.ports.stream import LogFull, LogState, LogUnusable
from terrazzo_adapters.jetstream.connection import Connection, Refused
from terrazzo_adapters.jetstream.log import state_of
from terrazzo_adapters.jetstream.reader import StreamReader
from terrazzo_adapters.jetstream.streams import make_stream

_LEAST_BYTES = 16 << 20  # where servers that were set up before have no more


class JetStreamKeyed:
    """``KeyedLog`` in the stream ``<NAME>_<KIND>``; a key's messages go to ``<name>.<kind>.<key>``.

    ``most_bytes``: what it may have, or less where the servers have no room for that; ``room``: the key of the
    configuration that says so.
    """

    def __init__(self, connection: Connection, kind: str, *, most_bytes: int, room: str) -> None:
        self._connection = connection
        self._most_bytes = most_bytes
        self._room = room
        name = connection.settings.name
        self._prefix = f"{name}.{kind}"
        self._name = f"{name.upper().replace('-', '_')}_{kind.upper()}"

    async def open(self) -> None:
        """Makes the stream where there is none; raises as ``JetStreamLog.open``."""
        wanted: dict[str, Any] = {
            "subjects": [f"{self._prefix}.>"],
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "num_replicas": self._connection.settings.replicas,
            "max_bytes": self._most_bytes,
            "max_msgs": -1,
            "max_age": 0,
            "max_msgs_per_subject": 1,
            "allow_msg_ttl": True,
            "deny_delete": True,
        }
        await make_stream(self._connection, self._name, wanted, room=self._room, least=_LEAST_BYTES)

    async def state(self) -> LogState:
        """As the stream's leader knows it.

        Raises:
            LogUnusable: the stream is gone.
        """
        try:
            return state_of(await self._connection.ask(f"STREAM.INFO.{self._name}"))
        except Refused as error:
            raise LogUnusable(f"stream.url: {error}") from None

    async def put(self, key: Sequence[str], body: bytes, *, message_id: str, lasts_s: float = 0.0) -> int:
        """Sets a key's message, for good or so many seconds; its number."""
        subject = ".".join((self._prefix, *(f"x{part.encode().hex()}" for part in key)))
        try:
            headers = {"Nats-Msg-Id": message_id} | ({"Nats-TTL": f"{ceil(lasts_s)}s"} if lasts_s else {})
            return await self._connection.publish(subject, body, headers)
        except Refused as error:
            if error.is_full:
                raise LogFull(f"the stream {self._name} is full: {error.text}: give it more ({self._room})") from None
            raise LogUnusable(f"stream.url: {error}") from None

    def read(self, after: int, created: str) -> StreamReader:
        """Reads what comes after a message; what was replaced meanwhile is left out."""
        return StreamReader(self._connection, self._name, after=after, created=created, state=self.state, is_keyed=True)
