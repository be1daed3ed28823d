"""The retained message of each topic."""

from __future__ import annotations

from collections.abc import Iterator

from ..message import Message


class _Node:
    __slots__ = ("children", "message")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.message: Message | None = None


class RetainedMessages:
    """Retained messages by topic, found by filter; no part of any session. [MQTT-3.1.2-7] of 3.1.1"""

    __slots__ = ("_root", "count")

    def __init__(self) -> None:
        self._root = _Node()
        self.count = 0

    def put(self, topic: str, message: Message, *, limit: int) -> bool:
        """Keeps ``message`` for the topic; an empty payload takes away what was kept.

        False, and nothing changes, where ``limit`` other topics have a message already.
        """
        if not message.payload:  # [MQTT-3.3.1-6] [MQTT-3.3.1-7]; [MQTT-3.3.1-10] [MQTT-3.3.1-11] of 3.1.1
            self.remove(topic)
            return True
        if self.count >= limit and self._find(topic) is None:
            return False
        node = self._root
        for level in topic.split("/"):
            node = node.children.get(level) or node.children.setdefault(level, _Node())
        self.count += node.message is None
        node.message = message  # [MQTT-3.3.1-5]; [MQTT-3.3.1-5] [MQTT-3.3.1-7] of 3.1.1
        return True

    def _find(self, topic: str) -> Message | None:
        node = self._root
        for level in topic.split("/"):
            if level not in node.children:
                return None
            node = node.children[level]
        return node.message

    def remove(self, topic: str) -> None:
        """Forgets the topic's message, if there is one."""
        path, levels = [self._root], topic.split("/")
        for level in levels:
            child = path[-1].children.get(level)
            if child is None:
                return
            path.append(child)
        self.count -= path[-1].message is not None
        path[-1].message = None
        for level, parent, node in zip(reversed(levels), reversed(path[:-1]), reversed(path[1:]), strict=True):
            if node.message is None and not node.children:
                del parent.children[level]

    def match(self, pattern: str, now_us: int) -> list[Message]:
        """The messages under a filter, in no particular order; those that have expired are forgotten."""
        found = list(self._walk(self._root, pattern.split("/"), 0))
        for message in found:
            if message.expires_us and message.expires_us <= now_us:
                self.remove(message.topic.decode())
        return [message for message in found if not message.expires_us or message.expires_us > now_us]

    def _walk(self, node: _Node, levels: list[str], depth: int) -> Iterator[Message]:
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

    def _below(self, node: _Node, *, at_root: bool) -> Iterator[Message]:
        pending = [node]
        while pending:
            each = pending.pop()
            if each.message is not None:
                yield each.message
            pending.extend(
                child for name, child in each.children.items() if not (at_root and each is node and name[:1] == "$")
            )
