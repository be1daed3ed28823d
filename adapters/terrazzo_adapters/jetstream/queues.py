"""``JetStreamQueues``: a stream of queues, of which each has a key and all have one order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from terrazzo.ports.stream import LogFull, Logged, LogState, LogUnusable
from terrazzo_adapters.jetstream.connection import Connection, Refused
from terrazzo_adapters.jetstream.keyed import key_of, logged_of, subject_of
from terrazzo_adapters.jetstream.log import NO_MESSAGE, state_of
from terrazzo_adapters.jetstream.reader import StreamReader
from terrazzo_adapters.jetstream.streams import make_stream

_LEAST_BYTES = 16 << 20  # where servers that were set up before have no more


class JetStreamQueues:
    """``QueueLog`` in the stream ``<NAME>_<KIND>``; a queue's messages go to ``<name>.<kind>.<key>``.

    ``most_bytes`` and ``room`` as those of ``JetStreamKeyed``.
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
            "max_msgs_per_subject": -1,
            "deny_delete": True,
        }
        await make_stream(self._connection, self._name, wanted, room=self._room, least=_LEAST_BYTES)

    async def state(self) -> LogState:
        """As the stream's leader knows it.

        Raises:
            LogUnusable: the stream is gone.
        """
        return state_of(await self._ask("STREAM.INFO"))

    async def append(self, key: Sequence[str], body: bytes, *, message_id: str) -> int:
        """Appends a message to a queue; its number."""
        try:
            subject = subject_of(self._prefix, key)
            return await self._connection.publish(subject, body, {"Nats-Msg-Id": message_id})
        except Refused as error:
            if error.is_full:
                raise LogFull(f"the stream {self._name} is full: {error.text}: give it more ({self._room})") from None
            raise LogUnusable(f"stream.url: {error}") from None

    async def find(self, sequence: int) -> Logged | None:
        """A message by its number; None: it is not there any more."""
        try:
            answer = await self._connection.ask(f"STREAM.MSG.GET.{self._name}", {"seq": sequence})
        except Refused as error:
            if error.code == NO_MESSAGE:
                return None
            raise LogUnusable(f"stream.url: {error}") from None
        found = answer["message"]
        return logged_of(found, key_of(self._prefix, str(found["subject"])))

    def read(self, after: int, created: str) -> StreamReader:
        """Reads what comes after a message; what was removed meanwhile is left out."""
        return StreamReader(
            self._connection,
            self._name,
            after=after,
            created=created,
            state=self.state,
            is_keyed=True,
            key_of=partial(key_of, self._prefix),
        )

    async def purge(self, key: Sequence[str], *, before: int = 0) -> None:
        """Removes a queue's messages, those with smaller numbers than ``before`` if it is given."""
        given = {"filter": subject_of(self._prefix, key)} | ({"seq": before} if before else {})
        await self._ask("STREAM.PURGE", given)

    async def _ask(self, what: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            return await self._connection.ask(f"{what}.{self._name}", given)
        except Refused as error:
            raise LogUnusable(f"stream.url: {error}") from None
