"""``MessageSpool``: a bridge's waiting messages on disk, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rocksdict import WriteBatch

from terrazzo.ports.bridge import BridgeMessage
from terrazzo_adapters.keyvalue.database import KeyValueDatabase

NumberedMessage = tuple[int, BridgeMessage]
"""A message and its number."""

_BUFFER_BYTES = 4 << 20
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(BridgeMessage).decode


class MessageSpool:
    """Messages by number, in a RocksDB of its own. All methods are called on one thread.

    Every method raises ``StoreUnavailable`` when the disk fails; later calls try again.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self._database = KeyValueDatabase(
            path, what=f"spool of bridge {name}", buffer_bytes=_BUFFER_BYTES, cache_bytes=_BUFFER_BYTES
        )

    def open(self) -> None:
        """Opens the database, creates it where there is none."""
        self._database.open()

    def checkpoint(self, path: Path) -> None:
        """Makes a copy that can be opened in its place; raises as ``KeyValueDatabase.checkpoint``."""
        self._ensure_open()
        self._database.checkpoint(path)

    def close(self) -> None:
        """Closes the database; what waits is there for the next process."""
        self._database.close("it is closed")

    def all(self) -> Iterator[NumberedMessage]:
        """All messages that wait, with their numbers, ascending."""
        return self._from(0)

    def read(self, first: int, *, most: int, most_bytes: int) -> list[NumberedMessage]:
        """The messages from the number ``first`` on, within ``most`` and ``most_bytes``; at least one if one waits."""
        self._ensure_open()
        found: list[NumberedMessage] = []
        size = 0
        for entry in self._from(first):
            found.append(entry)
            size += entry[1].size
            if len(found) >= most or size >= most_bytes:
                break
        return found

    def _from(self, first: int) -> Iterator[NumberedMessage]:
        with self._database.translated_errors():
            for key, value in self._database.rdict.items(from_key=_key(first)):
                assert isinstance(key, bytes)  # the database is in raw mode
                yield int.from_bytes(key[1:]), _decode(value)

    def commit(self, added: Sequence[NumberedMessage], gone: Sequence[int], *, sync: bool) -> None:
        """Adds and removes messages; the added ones are durable if ``sync``. Repeating a call changes nothing.

        Without ``sync`` a removed message may be back after a crash.
        """

        def fill(batch: WriteBatch) -> None:
            for number, message in added:
                batch.put(_key(number), _encode(message))
            for number in gone:
                batch.delete(_key(number))

        self._ensure_open()
        try:
            self._database.commit(fill, sync=sync)
        except Exception as error:  # whatever it was, what is on disk is no longer known: opened anew
            self._database.close(str(error))
            raise

    def _ensure_open(self) -> None:
        if not self._database.is_open:
            self._database.open()


def _key(number: int) -> bytes:
    return b"m" + number.to_bytes(8)
