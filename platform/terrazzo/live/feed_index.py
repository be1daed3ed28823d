"""Finds the feeds of a publication, by kind and source; its cost does not depend on subscriptions to other things."""

from __future__ import annotations

from collections.abc import Iterator

from terrazzo.domain.registry import Registry
from terrazzo.live.feed import Feed
from terrazzo.live.selector import ALL, OF_TERMINALS, FeedKey

_MOST_KNOWN = 100_000  # answers kept, and feeds in them


class FeedIndex:
    """Feeds by the keys of their selectors, and a cache of what was found for each source."""

    def __init__(self, registry: Registry) -> None:
        self.version = 0  # changes whenever what ``find`` returns may have changed
        self._registry = registry
        self._feeds: dict[FeedKey, dict[Feed, None]] = {}
        self._known: dict[tuple[str, int, int | None, str | None], tuple[Feed, ...]] = {}
        self._known_size = 0  # answers, and feeds in them
        registry.sharing_changes.listen(lambda uids: self._forget())

    def add(self, feed: Feed) -> None:
        """Adds a feed under each of its kinds."""
        for kind in feed.selector.kinds:
            self._feeds.setdefault(feed.selector.feed_key(kind), {})[feed] = None
        self._forget()

    def remove(self, feed: Feed) -> None:
        """Removes a feed that has ended."""
        for kind in feed.selector.kinds:
            key = feed.selector.feed_key(kind)
            feeds = self._feeds[key]
            del feeds[feed]
            if not feeds:
                del self._feeds[key]
        self._forget()

    def find(self, kind: str, company_id: int, object_id: int | None, terminal_id: str | None) -> tuple[Feed, ...]:
        """The feeds of a publication: its kind, its company, and the object, the terminal (uid) or both it is about."""
        source = kind, company_id, object_id, terminal_id
        found = self._known.get(source)
        if found is None:
            if self._known_size >= _MOST_KNOWN:
                self._known.clear()
                self._known_size = 0
            found = self._known[source] = tuple(self._find(*source))
            self._known_size += 1 + len(found)
        return found

    def _find(self, kind: str, company_id: int, object_id: int | None, terminal_id: str | None) -> Iterator[Feed]:
        keys: dict[int | str | tuple[int, ...], None] = {(company_id,): None, ALL: None}
        if terminal_id is not None:
            keys[terminal_id] = None
            if kind in OF_TERMINALS:
                keys.update(dict.fromkeys(self._registry.terminal_objects(terminal_id)))
        if object_id is not None:
            keys[object_id] = None
        for key in keys:
            for feed in self._feeds.get((kind, key), ()):
                if feed.selector.company_id in (None, company_id):
                    yield feed

    def _forget(self) -> None:
        self._known.clear()
        self._known_size = 0
        self.version += 1
