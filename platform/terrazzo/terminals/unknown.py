"""The client ids that tried to log in and are no terminal's: whoever installs one finds it here, and registers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from terrazzo.domain.actor import Actor
from terrazzo.domain.refusals import reasons
from terrazzo.domain.refusals.login_refused import LoginRefused
from terrazzo.domain.registry import Registry
from terrazzo.logins.share_table import ShareTable
from terrazzo.times import now_us
from terrazzo_broker.log_text import visible
from terrazzo_broker.peer_address import share_of

MOST = 10_000
MOST_OF_ADDRESS = 64
MOST_OF_COMPANY = 1_000
_MOST_DETAIL = 120
_MOST_CHARS = 64  # of a client id: longer ones are no uids


class UnknownTerminal(NamedTuple):
    """The tries of one client id from one address. Times in UTC microseconds.

    ``company_id`` is whose claim key or certificate the tries carried, 0 where they carried none.
    """

    uid: str
    address: str  # of the last try
    company_id: int
    tries: int
    first_us: int
    last_us: int
    reason: str = reasons.UNKNOWN_TERMINAL.name  # a name of ``REASONS``
    detail: str = ""


class UnknownTerminals:
    """The latest client ids that are no terminal's, in shares by address, so that nobody pushes out what others did.

    Tries that carried a company's key or certificate are kept apart, in shares by company: strangers push none out.

    Args:
        registry: what has been registered since is left out.
        clock: UTC microseconds.
    """

    def __init__(self, registry: Registry, *, clock: Callable[[], int] = now_us) -> None:
        self._registry = registry
        self._clock = clock
        self._strangers: ShareTable[str, str, UnknownTerminal] = ShareTable(most=MOST, most_of_share=MOST_OF_ADDRESS)
        self._claimed: ShareTable[int, str, UnknownTerminal] = ShareTable(most=MOST, most_of_share=MOST_OF_COMPANY)
        self._reasons: ShareTable[int | str, str, tuple[str, str]] = ShareTable(
            most=2 * MOST, most_of_share=MOST_OF_COMPANY
        )

    def note(self, client_id: str, address: str, company_id: int = 0) -> None:
        """Somebody tried to log in under a client id that nobody has; with something of the company, if any."""
        uid, now = client_id[:_MOST_CHARS], self._clock()
        share = share_of(address)
        before = self._claimed.get(company_id, uid) if company_id else self._strangers.get(share, uid)
        tries, first_us = (1, now) if before is None else (before.tries + 1, before.first_us)
        entry = UnknownTerminal(uid, address, company_id, tries, first_us, now)
        if company_id:
            self._claimed.put(company_id, uid, entry)
        else:
            self._strangers.put(share, uid, entry)

    def note_refused(self, refused: LoginRefused) -> None:
        """Why a login was refused, in the words that ``found`` has for it; a registered terminal's is not kept here."""
        if refused.terminal is None:
            share = refused.company_id or share_of(refused.address)
            said = refused.reason.name, visible(refused.detail[:_MOST_DETAIL])
            self._reasons.put(share, refused.client_id[:_MOST_CHARS], said)

    def _with_reason(self, entry: UnknownTerminal) -> UnknownTerminal:
        said = self._reasons.get(entry.company_id or share_of(entry.address), entry.uid)
        return entry if said is None else entry._replace(reason=said[0], detail=said[1])

    def found(self, actor: Actor) -> list[UnknownTerminal]:
        """What a user may see, the latest first: super users all of it, others what was their company's."""
        claimed = [entry for _, _, entry in self._claimed.values()]
        strangers = [entry for _, _, entry in self._strangers.values()] if actor.is_super else []
        seen = [
            self._with_reason(entry)
            for entry in (*claimed, *strangers)
            if (actor.is_super or entry.company_id == actor.company_id) and self._registry.terminal(entry.uid) is None
        ]
        return sorted(seen, key=lambda entry: entry.last_us, reverse=True)
