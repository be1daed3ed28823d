"""``KeyStream``: a stream whose messages have keys, which is all that its users have in common."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from terrazzo.ports.stream import LogFull, Logged, LogState, LogUnusable, RecordChanged
from terrazzo_adapters.jetstream.connection import Connection, Refused
from terrazzo_adapters.jetstream.log import NO_MESSAGE, WRONG_LAST, message_id_of, state_of
from terrazzo_adapters.jetstream.reader import StreamReader
from terrazzo_adapters.jetstream.streams import make_stream

_LEAST_BYTES = 16 << 20  # where servers that were set up before have no more


class KeyStream:
    """The stream ``<NAME>_<KIND>``; a key's messages go to ``<name>.<kind>.<key>``.

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

    async def open(self, **settings: Any) -> None:
        """Makes the stream where there is none, with these settings of its own; raises as ``JetStreamLog.open``."""
        wanted: dict[str, Any] = {
            "subjects": [f"{self._prefix}.>"],
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "num_replicas": self._connection.settings.replicas,
            "max_bytes": self._most_bytes,
            "max_msgs": -1,
            "max_age": 0,
            "deny_delete": True,
        } | settings
        await make_stream(self._connection, self._name, wanted, room=self._room, least=_LEAST_BYTES)

    async def state(self) -> LogState:
        """As the stream's leader knows it.

        Raises:
            LogUnusable: the stream is gone.
        """
        return state_of(await self._ask("STREAM.INFO"))

    async def publish(self, key: Sequence[str], body: bytes, headers: dict[str, str]) -> int:
        """Appends a message to those of a key; its number.

        Raises:
            RecordChanged: the headers name another last message than there is.
            LogFull: it was not appended.
            LogUnavailable: unknown.
        """
        try:
            return await self._connection.publish(self._subject(key), body, headers)
        except Refused as error:
            if error.code == WRONG_LAST:
                raise RecordChanged(".".join(key)) from None
            if error.is_full:
                raise LogFull(f"the stream {self._name} is full: {error.text}: give it more ({self._room})") from None
            raise LogUnusable(f"stream.url: {error}") from None

    async def last(self, key: Sequence[str]) -> Logged | None:
        """The newest message of a key; None: there is none."""
        return await self._find({"last_by_subj": self._subject(key)})

    async def at(self, sequence: int) -> Logged | None:
        """A message by its number; None: it is not there any more."""
        return await self._find({"seq": sequence})

    def read(self, after: int, created: str) -> StreamReader:
        """Reads what comes after a message; what was replaced or removed meanwhile is left out."""
        return StreamReader(
            self._connection,
            self._name,
            after=after,
            created=created,
            state=self.state,
            is_keyed=True,
            key_of=self._key,
        )

    async def purge(self, key: Sequence[str], *, before: int) -> None:
        """Removes a key's messages, those with smaller numbers than ``before`` if it is not 0."""
        given = {"filter": self._subject(key)} | ({"seq": before} if before else {})
        await self._ask("STREAM.PURGE", given)

    async def _find(self, asked: Mapping[str, Any]) -> Logged | None:
        try:
            answer = await self._connection.ask(f"STREAM.MSG.GET.{self._name}", asked)
        except Refused as error:
            if error.code == NO_MESSAGE:
                return None
            raise LogUnusable(f"stream.url: {error}") from None
        found = answer["message"]
        headers, body = (base64.b64decode(found.get(part, "")) for part in ("hdrs", "data"))
        return Logged(int(found["seq"]), body, message_id_of(headers), self._key(str(found["subject"])))

    async def _ask(self, what: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        try:
            return await self._connection.ask(f"{what}.{self._name}", given)
        except Refused as error:
            raise LogUnusable(f"stream.url: {error}") from None

    def _subject(self, key: Sequence[str]) -> str:
        """The subject of a key: each part as hexadecimal digits, as it may have dots and spaces."""
        return ".".join((self._prefix, *(f"x{part.encode().hex()}" for part in key)))

    def _key(self, subject: str) -> tuple[str, ...]:
        """The key of a subject; empty for one that stands for none."""
        parts = subject.removeprefix(f"{self._prefix}.").split(".")
        try:
            return tuple(bytes.fromhex(part.removeprefix("x")).decode() for part in parts)
        except ValueError:
            return ()
