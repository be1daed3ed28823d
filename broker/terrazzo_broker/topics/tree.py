"""The subscription trees, one for each owner: they find what matches a topic, level by level. [MQTT-4.7]"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from .owners import EVERYBODY


class TreeSubscriber(Protocol):
    """A subscriber, as the tree needs it."""

    @property
    def connection(self) -> object | None:
        """Its connection; None while it has none."""
        ...

    @property
    def is_elsewhere(self) -> bool:
        """Whether it stands for clients of another broker."""
        ...

    @property
    def owner(self) -> str:
        """Whose it is."""
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

    __slots__ = ("_order", "members", "turn")

    def __init__(self) -> None:
        self.members: dict[S, TopicSubscription] = {}
        self.turn = 0
        self._order: list[tuple[S, TopicSubscription]] = []  # of the members; empty after a change

    def add(self, session: S, subscription: TopicSubscription) -> None:
        """Adds a member, or replaces its subscription."""
        self.members[session] = subscription
        self._order = []

    def remove(self, session: S) -> bool:
        """Removes a member; whether it was one."""
        self._order = []
        return self.members.pop(session, None) is not None

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
        members = self._order = self._order or list(self.members.items())
        self.turn += 1
        for offset in range(len(members)):
            session, subscription = members[(self.turn + offset) % len(members)]
            if session.connection is not None or session.is_elsewhere:
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


class OwnerSubscriptions(Generic[S]):
    """Those of one owner's clients. ``epoch`` rises with each change; matches cached before it are stale."""

    __slots__ = ("epoch", "root")

    def __init__(self) -> None:
        self.root: _SubscriptionNode[S] = _SubscriptionNode()
        self.epoch = 0


class SubscriptionTree(Generic[S]):
    """All subscriptions of all sessions, by owner: neither the number of one's nor their coming and going costs another
    anything. ``epoch`` rises with each change of any."""

    __slots__ = ("_owners", "count", "epoch")

    def __init__(self) -> None:
        self._owners: dict[str, OwnerSubscriptions[S]] = {}
        self.epoch = 0
        self.count = 0

    def of(self, owner: str) -> OwnerSubscriptions[S]:
        """The subscriptions of one owner; the same object as long as the broker runs."""
        found = self._owners.get(owner)
        if found is None:
            found = self._owners[owner] = OwnerSubscriptions()
        return found

    def forget_matches(self, owner: str = EVERYBODY) -> None:
        """Makes an owner's cached matches stale."""
        self.epoch += 1
        for each in self._owners.values() if owner == EVERYBODY else (self.of(owner),):
            each.epoch += 1

    def add(self, pattern: str, group: str | None, session: S, subscription: TopicSubscription) -> None:
        """Subscribes, or replaces the session's subscription to the same filter. [MQTT-3.8.4-3] of both"""
        node = self.of(session.owner).root
        for level in pattern.split("/"):
            if node.children is None:
                node.children = {}
            node = node.children.get(level) or node.children.setdefault(level, _SubscriptionNode())
        if group is None:
            members = node.subscribers = {} if node.subscribers is None else node.subscribers
            self.count += session not in members
            members[session] = subscription
        else:
            groups = node.groups = {} if node.groups is None else node.groups
            shared = groups.get(group) or groups.setdefault(group, SharedGroup())
            self.count += session not in shared.members
            shared.add(session, subscription)
        self.forget_matches(session.owner)

    def remove(self, pattern: str, group: str | None, session: S) -> None:
        """Unsubscribes; nothing happens where there is no such subscription."""
        path = [self.of(session.owner).root]
        levels = pattern.split("/")
        for level in levels:
            child = (path[-1].children or {}).get(level)
            if child is None:
                return
            path.append(child)
        self.count -= self._remove_member(path[-1], group, session)
        self.forget_matches(session.owner)
        for level, parent, node in zip(reversed(levels), reversed(path[:-1]), reversed(path[1:]), strict=True):
            if not node.is_empty:
                break
            if parent.children is not None:
                del parent.children[level]

    def _remove_member(self, node: _SubscriptionNode[S], group: str | None, session: S) -> bool:
        if group is None:
            return (node.subscribers or {}).pop(session, None) is not None
        shared = (node.groups or {}).get(group)
        if shared is None or node.groups is None:
            return False
        removed = shared.remove(session)
        if not shared.members:
            del node.groups[group]
        return removed

    def group(self, pattern: str, group: str, owner: str) -> SharedGroup[S] | None:
        """An owner's shared subscription of this name to this filter; None where nobody has it."""
        node: _SubscriptionNode[S] | None = self.of(owner).root
        for level in pattern.split("/"):
            node = None if node is None or node.children is None else node.children.get(level)
        return None if node is None or node.groups is None else node.groups.get(group)

    def matching(self, topic: str, owner: str) -> Iterator[Match[S]]:
        """What a topic name matches of those who hear an owner's messages, a session as often as it has matching
        filters; None for each place that was looked at in vain. It may change while it is iterated over.

        [MQTT-3.3.2-3] of both; [MQTT-3.8.3-2] of 3.1.1
        """
        for root in self._heard_by(owner):
            for node in _matching(root, topic):
                if node is None:
                    yield None
                    continue
                if node.subscribers:
                    yield from list(node.subscribers.items())
                if node.groups:
                    yield from list(node.groups.values())

    def _heard_by(self, owner: str) -> Iterable[_SubscriptionNode[S]]:
        if owner == EVERYBODY:
            return [each.root for each in self._owners.values()]
        return [self._owners[each].root for each in (owner, EVERYBODY) if each in self._owners]


Match = tuple[S, TopicSubscription] | SharedGroup[S] | None


def _matching(root: _SubscriptionNode[S], topic: str) -> Iterator[_SubscriptionNode[S] | None]:
    nodes = [root]
    wild = not topic.startswith("$")  # [MQTT-4.7.2-1] of both
    for level in topic.split("/"):
        below = []
        for node in nodes:
            yield None
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
