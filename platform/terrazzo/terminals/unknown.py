"""The client ids that tried to log in and are no terminal's: whoever installs one finds it here, and registers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from terrazzo.domain.actor import Actor
from terrazzo.domain.registry import Registry
from terrazzo.logins.share_table import ShareTable
from terrazzo.times import now_us
from terrazzo_broker.peer_address import share_of

MOST = 10_000
MOST_OF_ADDRESS = 64
MOST_OF_COMPANY = 1_000
_MOST_CHARS = 64  # of a client id: longer ones are no uids


class UnknownTerminal(NamedTuple):
    """The tries of one client id from one address. Times in UTC microseconds.

    ``company_id`` is whose claim key the tries carried, 0 where they carried none.
    """

    uid: str
    address: str  # of the last try
    company_id: int
    tries: int
    first_us: int
    last_us: int


class UnknownTerminals:
    """The latest client ids that are no terminal's, in shares by address, so that nobody pushes out what others did.

    Tries that carried a company's claim key are kept apart, in shares by company: strangers push none of them out.

    Args:
        registry: what has been registered since is left out.
        clock: UTC microseconds.
    """

    def __init__(self, registry: Registry, *, clock: Callable[[], int] = now_us) -> None:
        self._registry = registry
        self._clock = clock
        self._strangers: ShareTable[str, str, UnknownTerminal] = ShareTable(most=MOST, most_of_share=MOST_OF_ADDRESS)
        self._claimed: ShareTable[int, str, UnknownTerminal] = ShareTable(most=MOST, most_of_share=MOST_OF_COMPANY)

    def note(self, client_id: str, address: str, company_id: int = 0) -> None:
        """Somebody tried to log in under a client id that nobody has; with the claim key of the company, if any."""
        uid, now = client_id[:_MOST_CHARS], self._clock()
        share = share_of(address)
        before = self._claimed.get(company_id, uid) if company_id else self._strangers.get(share, uid)
        tries, first_us = (1, now) if before is None else (before.tries + 1, before.first_us)
        entry = UnknownTerminal(uid, address, company_id, tries, first_us, now)
        if company_id:
            self._claimed.put(company_id, uid, entry)
        else:
            self._strangers.put(share, uid, entry)

    def found(self, actor: Actor) -> list[UnknownTerminal]:
        """What a user may see, the latest first: super users all of it, others what carried their company's key."""
        claimed = [entry for _, _, entry in self._claimed.values()]
        strangers = [entry for _, _, entry in self._strangers.values()] if actor.is_super else []
        seen = [
            entry
            for entry in (*claimed, *strangers)
            if (actor.is_super or entry.company_id == actor.company_id) and self._registry.terminal(entry.uid) is None
        ]
        return sorted(seen, key=lambda entry: entry.last_us, reverse=True)
