"""Retained messages that are written down."""

from __future__ import annotations

import sys

from ..message import Message
from ..topics.retained import RetainedMessages
from . import keys
from .journal import Journal
from .records import encode_entry


class JournaledRetained(RetainedMessages):
    """Retained messages on disk, except the broker's own figures."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def put(self, topic: str, message: Message, *, limit: int) -> bool:
        kept = super().put(topic, message, limit=limit)
        if kept and message.payload and not _is_own(topic):
            self._journal.changes.put(keys.RETAINED + message.topic, encode_entry(message))
            if message.qos:
                self._journal.promise()
            else:
                self._journal.later()
        return kept

    def remove(self, topic: str) -> None:
        before = self.count
        super().remove(topic)
        if self.count != before and not _is_own(topic):
            self._journal.changes.delete(keys.RETAINED + topic.encode())
            self._journal.promise()

    def restore(self, message: Message) -> None:
        """Takes in what was stored."""
        super().put(message.topic.decode(), message, limit=sys.maxsize)


def _is_own(topic: str) -> bool:
    return topic.startswith("$SYS/")
