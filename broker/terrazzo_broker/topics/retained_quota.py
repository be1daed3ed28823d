"""How much retained messages take, and may take: all of a broker, of one owner, of one client."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .owners import EVERYBODY

NO_LIMIT = 1 << 62
LEVEL_BYTES = 400  # of a level of a topic, in the tree that finds it
_Scope = tuple[str, ...]  # (): the broker, (owner,), (owner, client id)
_WHOSE = ("", " of one owner", " of one client")  # by the length of a scope


class RetainedSize(NamedTuple):
    """What messages take: their number, their bytes on disk or not, and the bytes of them that are in memory."""

    messages: int = 0
    bytes: int = 0
    memory_bytes: int = 0

    def plus(self, other: RetainedSize, sign: int = 1) -> RetainedSize:
        """Both together; ``sign`` -1: without the other."""
        return RetainedSize(*(mine + sign * its for mine, its in zip(self, other, strict=True)))


_UNLIMITED = RetainedSize(NO_LIMIT, NO_LIMIT, NO_LIMIT)
_NOTHING = RetainedSize()


class RetainedLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What there may be of all, of one owner's, of one client's."""

    broker: RetainedSize = _UNLIMITED
    owner: RetainedSize = _UNLIMITED
    client: RetainedSize = _UNLIMITED


class Source(NamedTuple):
    """Whose a message is: its owner, and the client that published it (None: not a client)."""

    owner: str
    client: str | None = None

    @property
    def scopes(self) -> list[_Scope]:
        """What it counts to."""
        of_client = [] if self.client is None else [(self.owner, self.client)]
        return [(), (self.owner,), *of_client]


class RetainedLedger:
    """Counts the retained messages of one broker. What is for everybody is the broker's own and isn't counted."""

    __slots__ = ("_used", "closed", "limits", "own_clients", "own_limits")

    def __init__(self) -> None:
        self.own_clients: set[str] = set()  # publishers of the embedding program: they have their owner's share
        self.limits = RetainedLimits()
        self.own_limits: dict[str, RetainedSize] = {}  # of owners that have another than all
        self.closed: frozenset[str] = frozenset()  # owners that have enough in memory: nothing of theirs grows
        self._used: dict[_Scope, RetainedSize] = {}

    @property
    def total(self) -> RetainedSize:
        """All that is counted."""
        return self._used.get((), _NOTHING)

    def by_owner(self) -> dict[str, RetainedSize]:
        """What each owner has."""
        return {scope[0]: used for scope, used in self._used.items() if len(scope) == 1}

    def add(self, source: Source, size: RetainedSize, sign: int = 1) -> None:
        """Counts a message; ``sign`` -1: counts it off."""
        if source.owner == EVERYBODY:
            return
        for scope in source.scopes:
            used = self._used.get(scope, _NOTHING).plus(size, sign)
            if used.messages:
                self._used[scope] = used
            else:
                self._used.pop(scope, None)

    def refusal(self, source: Source, size: RetainedSize, old: tuple[Source, RetainedSize] | None) -> str:
        """Why a message can't be kept in the place of ``old``; empty: it can.

        Where it takes no more than what it replaces it always can: what was there before a limit stays usable.
        """
        if source.owner == EVERYBODY:
            return ""
        if source.owner in self.closed and (old is None or size.memory_bytes > old[1].memory_bytes):
            return "too many retained bytes in memory of one owner"
        replaced = [] if old is None else old[0].scopes
        for scope in source.scopes:
            before = old[1] if old is not None and scope in replaced else _NOTHING
            after = self._used.get(scope, _NOTHING).plus(size).plus(before, -1)
            what = _excess(after, self._limit(scope), size.plus(before, -1))
            if what:
                return f"too many retained {what}{_WHOSE[len(scope)]}"
        return ""

    def excesses(self) -> list[tuple[_Scope, str]]:
        """Who has more than they may by now (the broker, owners, clients of owners), and of what."""
        found = ((scope, _excess(used, self._limit(scope), used)) for scope, used in self._used.items())
        return [(scope, what) for scope, what in found if what]

    def _limit(self, scope: _Scope) -> RetainedSize:
        if len(scope) == 2 and scope[1] in self.own_clients:
            return _UNLIMITED
        if len(scope) == 1:
            return self.own_limits.get(scope[0], self.limits.owner)
        return self.limits.client if scope else self.limits.broker


def _excess(used: RetainedSize, limit: RetainedSize, grown: RetainedSize) -> str:
    """What there is too much of; empty: of nothing, or no more than before."""
    names = ("messages", "bytes", "bytes in memory")
    for name, has, may, more in zip(names, used, limit, grown, strict=True):
        if has > may and more > 0:
            return name
    return ""
