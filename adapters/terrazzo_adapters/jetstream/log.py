"""``JetStreamLog``: a stream of frames, each appended by the number of the last."""

from __future__ import annotations

import base64
from typing import Any, Literal

from terrazzo.ports.stream import LogFull, Logged, LogServer, LogState, LogUnusable, StaleWriter
from terrazzo_adapters.jetstream.connection import Connection, Refused
from terrazzo_adapters.jetstream.reader import StreamReader
from terrazzo_adapters.jetstream.streams import check_stream, find_stream, make_stream

WRONG_LAST = 10_071
NO_MESSAGE = 10_037
_ONLY = "0"  # the one partition's part of the subject
_ROOM_KEYS = {"out": "stream.log_gib", "in": "stream.in_gib"}
_IF_FULL = {
    "out": "remove nodes that are gone (terrazzo cluster forget), or give it more (stream.log_gib)",
    "in": "no leader takes what fronts bring, or it is behind; or give it more (stream.in_gib)",
}


class JetStreamLog:
    """``ReplicatedLog`` in the stream ``<NAME>_OUT``, whose frames go to ``<name>.out.0``.

    ``kind``: ``in`` is that of what fronts have taken, ``<NAME>_IN``; ``most_bytes``: what it may have.
    """

    def __init__(self, connection: Connection, *, kind: Literal["out", "in"] = "out") -> None:
        self._connection = connection
        self._kind = kind
        settings = connection.settings
        self._stream_bytes = settings.most_bytes if kind == "out" else settings.most_in_bytes
        self._name = f"{settings.name.upper().replace('-', '_')}_{kind.upper()}"
        self._subject = f"{settings.name}.{kind}.{_ONLY}"

    async def open(self) -> None:
        """Makes the stream where there is none, and checks it.

        Raises:
            LogUnusable: it can't be made or is set up otherwise.
            LogUnavailable: the servers don't answer.
        """
        await make_stream(self._connection, self._name, self._wanted, room=_ROOM_KEYS[self._kind])

    async def is_there(self) -> bool:
        """Whether there is such a stream; one that is there is checked.

        Raises:
            LogUnusable: it is set up otherwise.
            LogUnavailable: the servers don't answer.
        """
        info = await find_stream(self._connection, self._name)
        if info is not None:
            check_stream(self._name, self._wanted, info["config"])
        return info is not None

    @property
    def _wanted(self) -> dict[str, Any]:
        settings = self._connection.settings
        return {
            "subjects": [f"{settings.name}.{self._kind}.*"],
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "num_replicas": settings.replicas,
            "max_bytes": self._stream_bytes,
            "max_msgs": -1,
            "max_age": 0,
            "max_msgs_per_subject": -1,
            "deny_delete": True,
        }

    @property
    def most_bytes(self) -> int:
        """Of one frame: what the servers take."""
        return self._connection.most_bytes

    async def state(self) -> LogState:
        """As the stream's leader knows it.

        Raises:
            LogUnusable: the stream is gone.
        """
        try:
            info = await self._connection.ask(f"STREAM.INFO.{self._name}")
        except Refused as error:
            raise LogUnusable(f"stream.url: {error}") from None
        return state_of(info)

    async def publish(self, body: bytes, *, message_id: str, last: int | None) -> int:
        """Appends a frame, behind the one with the number ``last`` where one is named."""
        headers = {"Nats-Msg-Id": message_id}
        if last is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(last)
        stats = self._connection.stats
        try:
            sequence = await self._connection.publish(self._subject, body, headers)
        except Refused as error:
            if error.code == WRONG_LAST:
                stats.stale += 1
                raise StaleWriter((await self.state()).last) from None
            if error.is_full:
                raise LogFull(f"the log is full: {error.text}: {_IF_FULL[self._kind]}") from None
            raise LogUnusable(f"stream.url: {error}") from None
        stats.published += 1
        stats.published_bytes += len(body)
        return sequence

    async def find(self, sequence: int) -> Logged | None:
        """A frame by its number, from the stream's leader."""
        try:
            answer = await self._connection.ask(f"STREAM.MSG.GET.{self._name}", {"seq": sequence})
        except Refused as error:
            if error.code == NO_MESSAGE:
                return None
            raise LogUnusable(f"stream.url: {error}") from None
        found = answer["message"]
        headers = base64.b64decode(found.get("hdrs", ""))
        return Logged(sequence, base64.b64decode(found.get("data", "")), message_id_of(headers))

    def read(self, after: int, created: str) -> StreamReader:
        """Reads what comes after a frame."""
        return StreamReader(self._connection, self._name, after=after, created=created, state=self.state)

    async def trim(self, before: int) -> None:
        """Deletes older frames; the newest one stays, as the next writer names its number."""
        last = (await self.state()).last
        if (before := min(before, last)) > 1:
            try:
                await self._connection.ask(f"STREAM.PURGE.{self._name}", {"seq": before})
            except Refused as error:
                raise LogUnusable(f"stream.url: {error}") from None


def state_of(info: dict[str, Any]) -> LogState:
    """What the information about a stream says of it."""
    state = info["state"]
    first, last = int(state["first_seq"]), int(state["last_seq"])
    most, created = int(info["config"].get("max_bytes", -1)), str(info["created"])
    first = first if state["messages"] else last + 1
    return LogState(created, first, last, int(state["bytes"]), most, _servers_of(info.get("cluster") or {}))


def _servers_of(cluster: dict[str, Any]) -> tuple[LogServer, ...]:
    """Those that keep the stream, as the one that leads it sees them."""
    found = [
        LogServer(
            str(each["name"]), False, bool(each.get("current")), bool(each.get("offline")), int(each.get("lag", 0))
        )
        for each in cluster.get("replicas") or ()
    ]
    if leader := cluster.get("leader"):
        found.append(LogServer(str(leader), leads=True, is_current=True, is_away=False, lag=0))
    return tuple(sorted(found))


def message_id_of(headers: bytes) -> str:
    """The id of a message among its headers, as they are on the wire."""
    for line in headers.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name == "Nats-Msg-Id":
            return value.strip()
    return ""
