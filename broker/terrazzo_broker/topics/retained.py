"""Retained messages: at most one for each topic, found by topic filter. MQTT, section 3.3.1.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar


class Retainable(Protocol):
    """A message that can be retained."""

    @property
    def topic(self) -> bytes:
        """The topic name, UTF-8."""
        ...

    @property
    def payload(self) -> bytes:
        """The payload; an empty one removes the topic's retained message."""
        ...

    @property
    def expires_us(self) -> int:
        """When it expires, UTC microseconds; 0 is never."""
        ...


M = TypeVar("M", bound=Retainable)
M_in = TypeVar("M_in", bound=Retainable, contravariant=True)


class RetainedJournal(Protocol[M_in]):
    """Makes changes of retained messages durable. ``origin``: the connection whose packet caused the change."""

    def kept(self, topic: str, message: M_in, origin: Any) -> None:
        """A topic's message was set or replaced."""

    def removed(self, topic: str, origin: Any) -> None:
        """A topic's message was removed."""


class _RetainedNode(Generic[M]):
    __slots__ = ("children", "message")

    def __init__(self) -> None:
        self.children: dict[str, _RetainedNode[M]] = {}
        self.message: M | None = None


class RetainedMessages(Generic[M]):
    """Retained messages by topic, found by filter; no part of any session. [MQTT-3.1.2-7] of 3.1.1

    ``journal`` makes changes durable; None: they are in memory only.
    """

    __slots__ = ("_journal", "_root", "count")

    def __init__(self, journal: RetainedJournal[M] | None = None) -> None:
        self._root: _RetainedNode[M] = _RetainedNode()
        self._journal = journal
        self.count = 0

    def put(self, topic: str, message: M, *, limit: int, origin: object = None) -> bool:
        """Keeps ``message`` for the topic; an empty payload takes away what was kept.

        False, and nothing changes, where ``limit`` other topics have a message already. ``origin``: the connection
        that published it, whose answer waits until that is durable.
        """
        if not message.payload:  # [MQTT-3.3.1-6] [MQTT-3.3.1-7]; [MQTT-3.3.1-10] [MQTT-3.3.1-11] of 3.1.1
            self.remove(topic, origin)
            return True
        if self.count >= limit and self._find(topic) is None:
            return False
        self.restore(topic, message)  # [MQTT-3.3.1-5]; [MQTT-3.3.1-5] [MQTT-3.3.1-7] of 3.1.1
        if self._journal is not None:
            self._journal.kept(topic, message, origin)
        return True

    def restore(self, topic: str, message: M) -> None:
        """Keeps a message without telling the journal: it is stored already."""
        node = self._root
        for level in topic.split("/"):
            node = node.children.get(level) or node.children.setdefault(level, _RetainedNode())
        self.count += node.message is None
        node.message = message

    def _find(self, topic: str) -> M | None:
        node = self._root
        for level in topic.split("/"):
            if level not in node.children:
                return None
            node = node.children[level]
        return node.message

    def remove(self, topic: str, origin: object = None) -> None:
        """Forgets the topic's message, if there is one."""
        path, levels = [self._root], topic.split("/")
        for level in levels:
            child = path[-1].children.get(level)
            if child is None:
                return
            path.append(child)
        if path[-1].message is not None:
            path[-1].message = None
            self.count -= 1
            if self._journal is not None:
                self._journal.removed(topic, origin)
        for level, parent, node in zip(reversed(levels), reversed(path[:-1]), reversed(path[1:]), strict=True):
            if node.message is None and not node.children:
                del parent.children[level]

    def match(self, pattern: str, now_us: int) -> list[M]:
        """The messages that a filter matches, in no particular order; expired ones are removed."""
        found = list(self._walk(self._root, pattern.split("/"), 0))
        for message in found:
            if message.expires_us and message.expires_us <= now_us:
                self.remove(message.topic.decode())
        return [message for message in found if not message.expires_us or message.expires_us > now_us]

    def _walk(self, node: _RetainedNode[M], levels: list[str], depth: int) -> Iterator[M]:
        if depth == len(levels):
            if node.message is not None:
                yield node.message
            return
        level = levels[depth]
        if level == "#":
            yield from self._below(node, at_root=depth == 0)
        elif level == "+":
            for name, child in node.children.items():
                if depth or not name.startswith("$"):  # [MQTT-4.7.2-1] of both
                    yield from self._walk(child, levels, depth + 1)
        elif level in node.children:
            yield from self._walk(node.children[level], levels, depth + 1)

    def _below(self, node: _RetainedNode[M], *, at_root: bool) -> Iterator[M]:
        pending = [node]
        while pending:
            each = pending.pop()
            if each.message is not None:
                yield each.message
            pending.extend(
                child for name, child in each.children.items() if not (at_root and each is node and name[:1] == "$")
            )
