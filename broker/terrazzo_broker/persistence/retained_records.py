"""Stores changes of retained messages."""

from __future__ import annotations

from ..delivery.connection_port import Origin
from ..message import ApplicationMessage
from . import keys
from .group_commit import GroupCommit
from .records import encode_entry


class RetainedRecords:
    """The ``RetainedJournal`` on disk; the broker's own ``$SYS`` messages are not stored."""

    __slots__ = ("_commits",)

    def __init__(self, commits: GroupCommit) -> None:
        self._commits = commits

    def kept(self, topic: str, message: ApplicationMessage, origin: Origin | None) -> None:
        """Stores a topic's message; at QoS 1 and 2 the publisher's acknowledgement waits for the commit."""
        if _is_own(topic):
            return
        self._commits.changes.put(keys.RETAINED + message.topic, encode_entry(message))
        if message.qos:
            self._commits.wait(origin)
        else:
            self._commits.later()

    def removed(self, topic: str, origin: Origin | None) -> None:
        """Deletes a topic's record; the answer to the publisher that removed it waits for the commit."""
        if not _is_own(topic):
            self._commits.changes.delete(keys.RETAINED + topic.encode())
            self._commits.wait(origin)


def _is_own(topic: str) -> bool:
    return topic.startswith("$SYS/")
