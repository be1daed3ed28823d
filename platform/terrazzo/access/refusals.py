"""Refused logins in the audit log: first ones each, all others as counts, so that guessing doesn't fill the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import AuditLog
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import Unavailable
from terrazzo.times import format_iso, now_us
from terrazzo_broker.peer_address import share_of

THROTTLED = "too many failures"
WINDOW_S = 3_600.0
TOLD = 10  # refusals of one kind that have an entry each within the window; of throttled ones the first alone

_NAMES = 8  # that an entry of counts names
_STRANGER = Actor(user_id=0, username="", company_id=0, role=Role.VIEWER)


class UserLoginStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    accepted: int = 0
    wrong_credentials: int = 0
    deactivated: int = 0
    throttled: int = 0
    busy: int = 0  # too many waited for their passwords to be checked
    wrong_codes: int = 0  # of second factors
    counted: int = 0  # refusals without an entry of their own in the audit log


_Kind = tuple[int, str, str]
"""The id of the user, 0 for names that nobody has; the share of the address; the reason."""


class Bounds(NamedTuple):
    """How much of a window is told in all.

    ``told``: entries of single refusals; ``kinds``: how many kinds are counted apart, with an entry each at the end of
    the window; others are counted together, in an entry for each reason.
    """

    told: int
    kinds: int


OF_STRANGERS = Bounds(told=100, kinds=64)  # names that nobody has
OF_USERS = Bounds(told=1_000, kinds=1_000)


class _Folded(msgspec.Struct):
    """What has been refused of one kind within the window; the times and names of those that are only counted."""

    actor: Actor
    told: int = 0
    counted: int = 0
    first_us: int = 0
    last_us: int = 0
    names: set[str] = msgspec.field(default_factory=set)


class _Window(msgspec.Struct):
    bounds: Bounds
    told: int = 0
    folded: dict[_Kind, _Folded] = msgspec.field(default_factory=dict)


class RefusalLog:
    """Notes refused logins, boundedly many within a window: see the constants above.

    Attributes:
        stats: of logins, ``/metrics`` shows them.
    """

    def __init__(self, audit: AuditLog, *, clock: Callable[[], int] = now_us) -> None:
        self.stats = UserLoginStats()
        self._audit = audit
        self._clock = clock
        self._strangers = _Window(OF_STRANGERS)
        self._users = _Window(OF_USERS)

    async def note(self, username: str, address: str, user: Actor | None, reason: str) -> None:
        """Notes a refused login; ``user``: whose name it is, None where nobody has it.

        Raises:
            Unavailable: the entry can't be written.
        """
        window = self._strangers if user is None else self._users
        actor = msgspec.structs.replace(user or _STRANGER, address=address)
        folded = _fold(window, actor, reason)
        if folded.told < (1 if reason == THROTTLED else TOLD) and window.told < window.bounds.told:
            folded.told += 1
            window.told += 1
            await self._tell(msgspec.structs.replace(actor, username=username), {"reason": reason})
        else:
            self._count(folded, username)

    async def flush(self) -> None:
        """Ends the window: an entry for each kind of which some were only counted.

        Raises:
            Unavailable: an entry can't be written; what is left is told the next time.
        """
        for window in (self._strangers, self._users):
            for kind in list(window.folded):
                await self._flush(window, kind)
            window.told = 0

    async def _flush(self, window: _Window, kind: _Kind) -> None:
        folded = window.folded.pop(kind)
        if not folded.counted:
            return
        since, until = format_iso(folded.first_us), format_iso(folded.last_us)
        after = {"reason": kind[2], "count": folded.counted, "since": since, "until": until}
        try:
            await self._tell(folded.actor, after | {"names": sorted(folded.names)})
        except Unavailable:
            _add(window.folded.setdefault(kind, folded), folded)
            raise

    async def _tell(self, actor: Actor, after: dict[str, object]) -> None:
        """Writes an entry; those under names that nobody has are no company's business."""
        entry = AuditEntry(
            actor=actor,
            company_id=actor.company_id or None,
            action="login_refused",
            entity="user",
            record_id=actor.user_id or None,
            uid=actor.username,
            after=after,
        )
        await self._audit.note(entry)

    def _count(self, folded: _Folded, username: str) -> None:
        now_us = self._clock()
        self.stats.counted += 1
        folded.first_us, folded.last_us = folded.first_us or now_us, now_us
        folded.counted += 1
        if len(folded.names) < _NAMES:
            folded.names.add(username[:64].encode("utf-8", "replace").decode())


def _add(newer: _Folded, older: _Folded) -> None:
    """Has what is counted anew tell of what could not be told, too."""
    if newer is older:
        return
    newer.told = max(newer.told, older.told)
    newer.counted += older.counted
    newer.first_us, newer.last_us = older.first_us, max(newer.last_us, older.last_us)
    newer.names.update(sorted(older.names)[: max(0, _NAMES - len(newer.names))])


def _fold(window: _Window, actor: Actor, reason: str) -> _Folded:
    """What a refusal is counted with."""
    share = share_of(actor.address)
    kind = (actor.user_id, share, reason)
    if kind not in window.folded and len(window.folded) >= window.bounds.kinds:
        kind, actor, share = (0, "", reason), _STRANGER, ""
    return window.folded.setdefault(kind, _Folded(msgspec.structs.replace(actor, address=share)))
