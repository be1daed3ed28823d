"""``JetStreamRecords``: small values by key in a key-value bucket, always as its leader has them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from terrazzo.ports.stream import LogFull, LogUnusable, RecordChanged, Revision
from terrazzo_adapters.jetstream.connection import Connection, Refused
from terrazzo_adapters.jetstream.streams import make_stream

_WRONG_LAST = 10_071
_NO_MESSAGE = 10_037
_MOST_KEYS = 10_000


class JetStreamRecords:
    """``Records`` in the bucket ``<name>-<kind>``, laid out as NATS's own tools read it (``nats kv``).

    ``room``: the key of the configuration that says how much it may have.
    """

    def __init__(
        self,
        connection: Connection,
        kind: str = "cluster",
        *,
        most_bytes: int = 16 << 20,
        room: str = "stream.log_gib",
    ) -> None:
        self._connection = connection
        self._most_bytes = most_bytes
        self._room = room
        self._bucket = f"{connection.settings.name}-{kind}"
        self._stream = f"KV_{self._bucket}"

    async def open(self) -> None:
        """Makes the bucket where there is none; raises as ``JetStreamLog.open``."""
        await make_stream(
            self._connection,
            self._stream,
            {
                "subjects": [f"$KV.{self._bucket}.>"],
                "storage": "file",
                "retention": "limits",
                "discard": "new",
                "num_replicas": self._connection.settings.replicas,
                "max_bytes": self._most_bytes,
                "max_msgs_per_subject": 1,
                "max_age": 0,
                "allow_rollup_hdrs": True,
                "deny_delete": True,
            },
            room=self._room,
        )

    async def get(self, key: str) -> Revision | None:
        """A value, None when there is none."""
        try:
            answer = await self._connection.ask(f"STREAM.MSG.GET.{self._stream}", {"last_by_subj": self._subject(key)})
        except Refused as error:
            if error.code == _NO_MESSAGE:
                return None
            raise LogUnusable(f"stream.url: {error}") from None
        message = answer["message"]
        return None if _is_deleted(message) else Revision(_value(message), int(message["seq"]))

    async def put(self, key: str, value: bytes, *, revision: int) -> int:
        """Sets a value by compare-and-set.

        A value that was deleted has the revision of its deletion; whoever creates one finds it out by the refusal.
        """
        try:
            return await self._put(key, value, revision)
        except RecordChanged:
            deleted = await self._deletion(key) if revision == 0 else 0
            if not deleted:
                raise
        return await self._put(key, value, deleted)

    async def delete(self, key: str) -> None:
        """Writes that there is none."""
        if await self.get(key) is not None:
            await self._publish(key, b"", {"KV-Operation": "DEL"})

    async def all(self) -> Mapping[str, bytes]:
        """All values by key."""
        found = {}
        for key in await self._keys():
            value = await self.get(key)
            if value is not None:
                found[key] = value.value
        return found

    async def _put(self, key: str, value: bytes, revision: int) -> int:
        return await self._publish(key, value, {"Nats-Expected-Last-Subject-Sequence": str(revision)})

    async def _publish(self, key: str, value: bytes, headers: Mapping[str, str]) -> int:
        try:
            return await self._connection.publish(self._subject(key), value, headers)
        except Refused as error:
            if error.code == _WRONG_LAST:
                raise RecordChanged(key) from None
            if error.is_full:
                raise LogFull(f"the bucket {self._bucket} is full: {error.text}: give it more ({self._room})") from None
            raise LogUnusable(f"stream.url: {error}") from None

    async def _deletion(self, key: str) -> int:
        try:
            answer = await self._connection.ask(f"STREAM.MSG.GET.{self._stream}", {"last_by_subj": self._subject(key)})
        except Refused:
            return 0
        return int(answer["message"]["seq"]) if _is_deleted(answer["message"]) else 0

    async def _keys(self) -> list[str]:
        """The keys, deleted ones too."""
        prefix = self._subject("")
        try:
            body = {"subjects_filter": f"{prefix}>"}
            info = await self._connection.ask(f"STREAM.INFO.{self._stream}", body)
        except Refused as error:
            raise LogUnusable(f"stream.url: {error}") from None
        subjects = info["state"].get("subjects") or {}
        return sorted(subject.removeprefix(prefix) for subject in subjects)[:_MOST_KEYS]

    def _subject(self, key: str) -> str:
        return f"$KV.{self._bucket}.{key}"


def _value(message: Mapping[str, Any]) -> bytes:
    return base64.b64decode(message.get("data", ""))


def _is_deleted(message: Mapping[str, Any]) -> bool:
    return b"KV-Operation" in base64.b64decode(message.get("hdrs", ""))
