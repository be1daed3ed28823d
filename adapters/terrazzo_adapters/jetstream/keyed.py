"""``JetStreamKeyed``: a stream that keeps the newest message of each key, in one order for all who read it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any

from terrazzo.ports.stream import LogFull, Logged, LogState, LogUnusable, RecordChanged
from terrazzo_adapters.jetstream.connection import Connection, Refused
from terrazzo_adapters.jetstream.log import NO_MESSAGE, WRONG_LAST, message_id_of, state_of
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
        return await self._put(key, body, {"Nats-Msg-Id": message_id}, lasts_s)

    async def replace(
        self, key: Sequence[str], body: bytes, *, last: int, message_id: str, lasts_s: float = 0.0
    ) -> int:
        """``put``, where the present message has the number ``last``."""
        headers = {"Nats-Msg-Id": message_id, "Nats-Expected-Last-Subject-Sequence": str(last)}
        return await self._put(key, body, headers, lasts_s)

    async def get(self, key: Sequence[str]) -> Logged | None:
        """A key's present message; None: there is none."""
        subject = subject_of(self._prefix, key)
        try:
            answer = await self._connection.ask(f"STREAM.MSG.GET.{self._name}", {"last_by_subj": subject})
        except Refused as error:
            if error.code == NO_MESSAGE:
                return None
            raise LogUnusable(f"stream.url: {error}") from None
        return logged_of(answer["message"], tuple(key))

    async def _put(self, key: Sequence[str], body: bytes, headers: dict[str, str], lasts_s: float) -> int:
        headers |= {"Nats-TTL": f"{ceil(lasts_s)}s"} if lasts_s else {}
        try:
            return await self._connection.publish(subject_of(self._prefix, key), body, headers)
        except Refused as error:
            if error.code == WRONG_LAST:
                raise RecordChanged(".".join(key)) from None
            if error.is_full:
                raise LogFull(f"the stream {self._name} is full: {error.text}: give it more ({self._room})") from None
            raise LogUnusable(f"stream.url: {error}") from None

    def read(self, after: int, created: str) -> StreamReader:
        """Reads what comes after a message; what was replaced meanwhile is left out."""
        return StreamReader(
            self._connection,
            self._name,
            after=after,
            created=created,
            state=self.state,
            is_keyed=True,
            key_of=partial(key_of, self._prefix),
        )


def subject_of(prefix: str, key: Sequence[str]) -> str:
    """The subject of a key: each part as hexadecimal digits, as it may have dots and spaces."""
    return ".".join((prefix, *(f"x{part.encode().hex()}" for part in key)))


def key_of(prefix: str, subject: str) -> tuple[str, ...]:
    """The key of a subject; empty for one that stands for none."""
    parts = subject.removeprefix(f"{prefix}.").split(".")
    try:
        return tuple(bytes.fromhex(part.removeprefix("x")).decode() for part in parts)
    except ValueError:
        return ()


def logged_of(message: Mapping[str, Any], key: tuple[str, ...]) -> Logged:
    """A message as the servers answer with it."""
    headers = base64.b64decode(message.get("hdrs", ""))
    body = base64.b64decode(message.get("data", ""))
    return Logged(int(message["seq"]), body, message_id_of(headers), key)
