"""The subscription tree: finds the subscriptions that match a topic, level by level. [MQTT-4.7]"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec


class TreeSubscriber(Protocol):
    """A subscriber, as the tree needs it."""

    @property
    def connection(self) -> object | None:
        """Its connection; None while it has none."""
        ...


S = TypeVar("S", bound=TreeSubscriber)


class TopicSubscription(msgspec.Struct, frozen=True, gc=False):
    """One granted subscription of one session. ``filter``: as sent, with ``$share/<group>/`` where it is shared."""

    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifier: int = 0


class SharedGroup(Generic[S]):
    """The members of one shared subscription; each message goes to one of them, in turn."""

    __slots__ = ("members", "turn")

    def __init__(self) -> None:
        self.members: dict[S, TopicSubscription] = {}
        self.turn = 0

    def among(self, may_receive: Callable[[S], bool]) -> SharedGroup[S] | None:
        """The group reduced to the members that may receive a topic; None where none may."""
        members = {session: wish for session, wish in self.members.items() if may_receive(session)}
        if len(members) == len(self.members):
            return self
        group: SharedGroup[S] = SharedGroup()
        group.members = members
        return group if members else None

    def pick(self) -> tuple[S, TopicSubscription]:
        """The next member in turn, a connected one if there is any."""
        members = list(self.members.items())
        self.turn += 1
        for offset in range(len(members)):
            session, subscription = members[(self.turn + offset) % len(members)]
            if session.connection is not None:
                return session, subscription
        return members[self.turn % len(members)]


class _SubscriptionNode(Generic[S]):
    __slots__ = ("children", "groups", "subscribers")

    def __init__(self) -> None:
        self.children: dict[str, _SubscriptionNode[S]] | None = None
        self.subscribers: dict[S, TopicSubscription] | None = None
        self.groups: dict[str, SharedGroup[S]] | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.children or self.subscribers or self.groups)


class SubscriptionTree(Generic[S]):
    """All subscriptions of all sessions. ``epoch`` rises with each change; matches cached before it are stale."""

    __slots__ = ("_root", "count", "epoch")

    def __init__(self) -> None:
        self._root: _SubscriptionNode[S] = _SubscriptionNode()
        self.epoch = 0
        self.count = 0

    def forget_matches(self) -> None:
        """Makes all cached matches stale."""
        self.epoch += 1

    def add(self, pattern: str, group: str | None, session: S, subscription: TopicSubscription) -> None:
        """Subscribes, or replaces the session's subscription to the same filter. [MQTT-3.8.4-3] of both"""
        node = self._root
        for level in pattern.split("/"):
            if node.children is None:
                node.children = {}
            node = node.children.get(level) or node.children.setdefault(level, _SubscriptionNode())
        members = self._members(node, group)
        self.count += session not in members
        members[session] = subscription
        self.epoch += 1

    def _members(self, node: _SubscriptionNode[S], group: str | None) -> dict[S, TopicSubscription]:
        if group is None:
            if node.subscribers is None:
                node.subscribers = {}
            return node.subscribers
        if node.groups is None:
            node.groups = {}
        return node.groups.setdefault(group, SharedGroup()).members

    def remove(self, pattern: str, group: str | None, session: S) -> None:
        """Unsubscribes; nothing happens where there is no such subscription."""
        path = [self._root]
        levels = pattern.split("/")
        for level in levels:
            child = (path[-1].children or {}).get(level)
            if child is None:
                return
            path.append(child)
        self.count -= self._remove_member(path[-1], group, session)
        self.epoch += 1
        for level, parent, node in zip(reversed(levels), reversed(path[:-1]), reversed(path[1:]), strict=True):
            if node.is_empty and parent.children is not None:
                del parent.children[level]

    def _remove_member(self, node: _SubscriptionNode[S], group: str | None, session: S) -> bool:
        if group is None:
            return (node.subscribers or {}).pop(session, None) is not None
        shared = (node.groups or {}).get(group)
        if shared is None or node.groups is None:
            return False
        removed = shared.members.pop(session, None) is not None
        if not shared.members:
            del node.groups[group]
        return removed

    def match(self, topic: str) -> tuple[list[tuple[S, TopicSubscription]], list[SharedGroup[S]]]:
        """All subscriptions that a topic name matches, a session as often as it has matching filters.

        [MQTT-3.3.2-3] of both; [MQTT-3.8.3-2] of 3.1.1
        """
        plain: list[tuple[S, TopicSubscription]] = []
        shared: list[SharedGroup[S]] = []
        for node in self._matching(topic):
            if node.subscribers:
                plain.extend(node.subscribers.items())
            if node.groups:
                shared.extend(node.groups.values())
        return plain, shared

    def _matching(self, topic: str) -> Iterator[_SubscriptionNode[S]]:
        nodes = [self._root]
        wild = not topic.startswith("$")  # [MQTT-4.7.2-1] of both
        for level in topic.split("/"):
            below = []
            for node in nodes:
                children = node.children
                if not children:
                    continue
                if wild and "#" in children:
                    yield children["#"]
                if wild and "+" in children:
                    below.append(children["+"])
                if level in children and level not in ("+", "#"):
                    below.append(children[level])
            wild = True
            nodes = below
        for node in nodes:
            yield node
            if node.children and "#" in node.children:  # "sport/#" also matches "sport" (section 4.7.1.2)
                yield node.children["#"]
