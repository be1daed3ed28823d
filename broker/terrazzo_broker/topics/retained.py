"""Retained messages: at most one for each topic of an owner, found by topic filter. MQTT, section 3.3.1.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from .owners import EVERYBODY
from .retained_quota import LEVEL_BYTES, RetainedLedger, RetainedSize, Source


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

    @property
    def owner(self) -> str:
        """Whose message it is."""
        ...

    @property
    def publisher(self) -> str | None:
        """The client id of who published it."""
        ...

    @property
    def size(self) -> int:
        """Its bytes, wherever they are."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Its bytes that are in memory."""
        ...


M = TypeVar("M", bound=Retainable)


class RetainedJournal(Protocol[M]):
    """Makes changes of retained messages durable. ``origin``: the connection whose packet caused the change."""

    def storable(self, message: M) -> M:
        """The message in the form in which it is kept in memory: without a payload that is to be read later."""

    def kept(self, topic: str, message: M, origin: Any) -> None:
        """A topic's message was set or replaced."""

    def removed(self, topic: str, owner: str, origin: Any) -> None:
        """A topic's message of this owner was removed."""

    def read(self, message: M) -> M | None:
        """A message as ``storable`` returned it, with its payload; None: the storage hasn't got it."""


class _RetainedNode(Generic[M]):
    __slots__ = ("children", "message")

    def __init__(self) -> None:
        self.children: dict[str, _RetainedNode[M]] = {}
        self.message: M | None = None


class RetainedMessages(Generic[M]):
    """Retained messages by owner and topic, found by filter; no part of any session. [MQTT-3.1.2-7] of 3.1.1

    Owners don't share topics: what one retains neither replaces nor removes what another does. ``journal`` makes
    changes durable; None: they are in memory only. ``ledger`` counts them and knows how many there may be.
    """

    __slots__ = ("_ending", "_journal", "_roots", "count", "ledger")

    def __init__(self, journal: RetainedJournal[M] | None = None) -> None:
        self._roots: dict[str, _RetainedNode[M]] = {}  # by owner
        self._ending: list[_RetainedNode[M]] = []  # cut off, still counted and stored
        self._journal = journal
        self.count = 0
        self.ledger = RetainedLedger()

    def put(self, topic: str, message: M, *, origin: object = None) -> str:
        """Keeps ``message`` for the topic; an empty payload takes away what was kept.

        Returns why it isn't kept, with nothing changed; empty: it is. ``origin``: the connection that published it,
        whose answer waits until that is durable.
        """
        if not message.payload:  # [MQTT-3.3.1-6] [MQTT-3.3.1-7]; [MQTT-3.3.1-10] [MQTT-3.3.1-11] of 3.1.1
            self.remove(topic, message.owner, origin)
            return ""
        kept = message if self._journal is None else self._journal.storable(message)
        refusal = self._refusal(topic, kept)
        if refusal:
            return refusal
        self.restore(topic, kept)  # [MQTT-3.3.1-5]; [MQTT-3.3.1-5] [MQTT-3.3.1-7] of 3.1.1
        if self._journal is not None:
            self._journal.kept(topic, message, origin)
        return ""

    def take(self, topic: str, message: M) -> None:
        """Keeps a message that is retained at other brokers, too, whatever there may be here."""
        kept = message if self._journal is None else self._journal.storable(message)
        self.restore(topic, kept)
        if self._journal is not None:
            self._journal.kept(topic, kept, None)

    def refusal(self, topic: str, message: M) -> str:
        """Why ``put`` would not keep a message; empty: it would."""
        if not message.payload:
            return ""
        return self._refusal(topic, message if self._journal is None else self._journal.storable(message))

    def _refusal(self, topic: str, message: M) -> str:
        old = self._find(topic, message.owner)
        replaced = None if old is None else (_source(old), _size(topic, old))
        return self.ledger.refusal(_source(message), _size(topic, message), replaced)

    def restore(self, topic: str, message: M) -> None:
        """Keeps a message without telling the journal: it is stored already."""
        node = self._roots.setdefault(message.owner, _RetainedNode())
        for level in topic.split("/"):
            node = node.children.get(level) or node.children.setdefault(level, _RetainedNode())
        if node.message is None:
            self.count += 1
        else:
            self.ledger.add(_source(node.message), _size(topic, node.message), -1)
        self.ledger.add(_source(message), _size(topic, message))
        node.message = message

    def _find(self, topic: str, owner: str) -> M | None:
        path = self._path(topic, owner)
        return path[-1].message if path else None

    def _path(self, topic: str, owner: str) -> list[_RetainedNode[M]]:
        """The nodes from the owner's root to the topic's; empty where it has none."""
        root = self._roots.get(owner)
        path = [] if root is None else [root]
        for level in topic.split("/"):
            child = path[-1].children.get(level) if path else None
            if child is None:
                return []
            path.append(child)
        return path

    def remove(self, topic: str, owner: str = "", origin: object = None) -> None:
        """Removes an owner's message for a topic, if there is one."""
        path = self._path(topic, owner)
        if not path:
            return
        message = path[-1].message
        if message is not None:
            path[-1].message = None
            self.count -= 1
            self.ledger.add(_source(message), _size(topic, message), -1)
            if self._journal is not None:
                self._journal.removed(topic, owner, origin)
        self._prune(topic, owner, path)

    def _prune(self, topic: str, owner: str, path: list[_RetainedNode[M]]) -> None:
        """Removes nodes of a path that hold nothing any more, from its end."""
        levels = topic.split("/")
        for level, parent, node in zip(reversed(levels), reversed(path[:-1]), reversed(path[1:]), strict=True):
            if node.message is None and not node.children:
                del parent.children[level]
        if not path[0].children:
            del self._roots[owner]

    # The end of a topic

    def end_below(self, owner: str, prefix: str) -> None:
        """Cuts off an owner's messages on a topic and below it: they are found no more. ``remove_ended`` follows."""
        path = self._path(prefix, owner)
        if path:
            end = path[-1]
            cut: _RetainedNode[M] = _RetainedNode()
            cut.message, cut.children = end.message, end.children
            end.message, end.children = None, {}
            self._ending.append(cut)
            self._prune(prefix, owner, path)

    def remove_ended(self, most: int) -> int:
        """Removes up to ``most`` of the messages that were cut off; how many it were."""
        removed = 0
        while self._ending and removed < most:
            node = self._ending.pop()
            self._ending.extend(node.children.values())
            message = node.message
            if message is None:
                continue
            removed += 1
            self.count -= 1
            topic = message.topic.decode()
            self.ledger.add(_source(message), _size(topic, message), -1)
            if self._journal is not None and self._find(topic, message.owner) is None:  # not retained anew since
                self._journal.removed(topic, message.owner, None)
        return removed

    def levels_below(self, level: str) -> Iterator[tuple[str, str]]:
        """Owner and second level of the topics that start with a first level, to be listed before anything changes."""
        for owner, root in self._roots.items():
            first = root.children.get(level)
            for second in () if first is None else first.children:
                yield owner, second

    # Finding

    def owners(self) -> list[str]:
        """Whose messages there are."""
        return list(self._roots)

    def walk(self, pattern: str, owner: str = "") -> Iterator[M | None]:
        """What a filter matches of an owner's messages and of those for everybody, in no particular order, and None for
        each place that was looked at in vain.

        Messages may come and go while it is iterated over. ``whole`` has their payloads.
        """
        for each in {owner, EVERYBODY}:
            root = self._roots.get(each)
            if root is not None:
                yield from _walk(root, pattern.split("/"))

    def whole(self, message: M, now_us: int) -> M | None:
        """A message that ``walk`` found, with its payload; None where it has gone, or expires now."""
        topic = message.topic.decode()
        if message.expires_us and message.expires_us <= now_us:
            self.remove(topic, message.owner)
        elif self._find(topic, message.owner) is message:
            return message if self._journal is None else self._journal.read(message)
        return None


def _walk(root: _RetainedNode[M], levels: list[str]) -> Iterator[M | None]:
    pending: list[tuple[Iterator[_RetainedNode[M]], int]] = [(iter((root,)), 0)]
    while pending:
        nodes, depth = pending[-1]
        node = next(nodes, None)
        if node is None:
            pending.pop()
            continue
        level = levels[depth] if depth < len(levels) else ""
        if depth == len(levels):
            yield node.message
        elif level == "#":
            yield node.message
            pending.append((_children(node, root), depth))
        elif level == "+":
            yield None
            pending.append((_children(node, root), depth + 1))
        elif level in node.children:
            pending.append((iter((node.children[level],)), depth + 1))


def _children(node: _RetainedNode[M], root: _RetainedNode[M]) -> Iterator[_RetainedNode[M]]:
    """The nodes that a wildcard stands for: at the root not those that begin with ``$``. [MQTT-4.7.2-1] of both"""
    if node is not root:
        return iter(list(node.children.values()))  # which may come and go meanwhile
    return (child for name, child in list(node.children.items()) if not name.startswith("$"))


def _source(message: Retainable) -> Source:
    return Source(message.owner, message.publisher)


def _size(topic: str, message: Retainable) -> RetainedSize:
    place = LEVEL_BYTES * (topic.count("/") + 1)
    return RetainedSize(1, place + message.size, place + message.memory_bytes)
