"""Stores changes of retained messages."""

from __future__ import annotations

from ..delivery.connection_port import Origin
from ..limited_log import limited_logger
from ..message import ApplicationMessage
from ..storage import StorageError
from . import keys
from .group_commit import GroupCommit
from .payloads import whole, without_payload
from .records import encode_entry

log = limited_logger("terrazzo_broker.persistence")


class RetainedRecords:
    """The ``RetainedJournal`` on disk; the broker's own ``$SYS`` messages are not stored."""

    __slots__ = ("_commits",)

    def __init__(self, commits: GroupCommit) -> None:
        self._commits = commits

    def kept(self, topic: str, message: ApplicationMessage, origin: Origin | None) -> None:
        """Stores a topic's message; at QoS 1 and 2 the publisher's acknowledgement waits for the commit."""
        if _is_own(message.topic):
            return
        self._commits.changes.put(keys.retained_key(message.owner, message.topic), encode_entry(message))
        if message.qos:
            self._commits.wait(origin)
        else:
            self._commits.later(origin)

    def storable(self, message: ApplicationMessage) -> ApplicationMessage:
        """The message without a long payload, which is read again when somebody wants it."""
        return message if _is_own(message.topic) else without_payload(message)

    def read(self, message: ApplicationMessage) -> ApplicationMessage | None:
        """The message with its payload, committed or not yet; None, and a log line: it can't be read."""
        try:
            return whole(message, keys.retained_key(message.owner, message.topic), self._commits.read)
        except StorageError as error:
            log.warning("a retained message can't be read: %s", error)
            return None

    def removed(self, topic: str, owner: str, origin: Origin | None) -> None:
        """Deletes a topic's record; the answer to the publisher that removed it waits for the commit."""
        if not _is_own(topic.encode()):
            self._commits.changes.delete(keys.retained_key(owner, topic.encode()))
            self._commits.wait(origin)


def _is_own(topic: bytes) -> bool:
    return topic.startswith(b"$SYS/")
