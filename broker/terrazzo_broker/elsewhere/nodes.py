"""Several brokers with clients of the same owners: which filters the clients here have, and what comes from elsewhere.

A ``NodeSubscriber`` stands in the tree of subscriptions for the clients of another broker, so that a message goes there
as it goes to any other receiver, where one of them has a filter that matches, and nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ..core import BrokerCore
from ..delivery.local_subscriber import LocalSubscriber
from ..delivery.routing import Route
from ..hooks import PublishGrant
from ..message import ApplicationMessage
from ..scheduling.turns import Steps
from ..topics.names import split_shared
from ..topics.tree import TopicSubscription

_ROUTES = 4_096  # that are kept, of messages from elsewhere


class NodeSubscriber(LocalSubscriber):
    """The clients of one owner at another broker; of a shared subscription: those that are its members there."""

    __slots__ = ()

    is_elsewhere = True


class Elsewhere:
    """What a broker needs of others and they of it; it carries nothing itself.

    Args:
        core: of the broker.
        on_filter: is told of an owner and a filter that its clients here have from now on (True), or no more.
    """

    def __init__(self, core: BrokerCore, on_filter: Callable[[str, str, bool], None]) -> None:
        self._core = core
        self._told = on_filter
        self._filters: Counter[tuple[str, str]] = Counter()  # by owner and filter: bounded as subscriptions are
        self._routes: dict[tuple[str, bytes, str, bool], tuple[int, Route]] = {}
        for session in core.sessions.values():
            self._filters.update((session.owner, pattern) for pattern in session.subscriptions)
        core.on_filter = self._on_filter

    def filters(self) -> Iterable[tuple[str, str]]:
        """Owner and filter of all that clients here have subscribed to, once each."""
        return list(self._filters)

    def _on_filter(self, owner: str, pattern: str, change: int) -> None:
        key = owner, pattern
        before = self._filters[key]
        if before + change > 0:
            self._filters[key] = before + change
        else:
            del self._filters[key]
        if (before > 0) != (before + change > 0):
            self._told(owner, pattern, change > 0)

    def add(self, subscriber: NodeSubscriber, pattern: str) -> None:
        """Has a subscriber handed what matches a filter, as it was published."""
        self._core.add_receiver(subscriber, TopicSubscription(pattern, 2, retain_as_published=True))

    def remove(self, subscriber: NodeSubscriber, pattern: str) -> None:
        """Hands it no more of what matches a filter."""
        shared = split_shared(pattern)
        if shared is not None:
            self._core.tree.remove(shared.filter, shared.group, subscriber)
            self._core.stats.subscriptions = self._core.tree.count

    def deliver(
        self,
        message: ApplicationMessage,
        owner: str,
        *,
        shared: str = "",
        own_only: bool = True,
        on_delivered: Callable[[bool], None],
    ) -> None:
        """Hands a message from elsewhere to an owner's clients here, in the order of the calls.

        ``shared``: to one member of this shared subscription alone. ``own_only``: False lets clients of other brokers
        have it, too. ``on_delivered`` is told whether there was anybody.
        """
        self._core.turns.start(owner, self._deliver(message, owner, shared, own_only, on_delivered))

    def _deliver(
        self,
        message: ApplicationMessage,
        owner: str,
        shared: str,
        own_only: bool,
        on_delivered: Callable[[bool], None],
    ) -> Steps[None]:
        core, is_heard = self._core, False
        try:
            route = yield from self._route(message.topic, owner, shared, own_only)
            is_heard = not route.is_unheard
            yield from core.router.delivering(route, [message], core.now_us(), None)
        finally:
            on_delivered(is_heard)

    def _route(self, topic: bytes, owner: str, shared: str, own_only: bool) -> Steps[Route]:
        key, epoch = (owner, topic, shared, own_only), self._core.tree.of(owner).epoch
        known = self._routes.get(key)
        if known is not None and known[0] == epoch:
            return known[1]
        grant = PublishGrant(topic.decode())
        if shared:
            route = self._shared_route(grant, owner, shared, own_only)
            yield
        else:
            route = yield from self._core.router.route(grant, topic, None, owner, own_only=own_only)
        if len(self._routes) >= _ROUTES:
            self._routes.clear()
        self._routes[key] = epoch, route
        return route

    def _shared_route(self, grant: PublishGrant, owner: str, shared: str, own_only: bool) -> Route:
        wanted, core = split_shared(shared), self._core
        group = None
        if wanted is not None and wanted.group is not None:
            found = core.tree.group(wanted.filter, wanted.group, owner)
            allowed = core.router.filter_of(grant.topic, owner, own_only=own_only)
            group = None if found is None else found.among(allowed)
        return Route(grant, owner, b"", [], [] if group is None else [group])
