"""``SharedLogins``: whoever is let in at one of several nodes is connected at no other, and has its session there."""

from __future__ import annotations

import logging

from mqtt5 import ConnAckReasonCode
from msgspec.structs import replace

from terrazzo.embedded.sessions.takeover import SessionTakeover
from terrazzo.ports.stream import LogFull, LogUnavailable, LogUnusable
from terrazzo.replication.holders import Holders, HolderSilent
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.link import TerminalLink
from terrazzo_broker.hooks import Accept, Challenge, ConnectRequest, Refuse, Verdict

_log = logging.getLogger(__name__)


class SharedLogins:
    """What follows when this node has accepted a login. ``holders``: of client ids; ``sessions``: of this node."""

    def __init__(self, holders: Holders, sessions: SessionTakeover) -> None:
        self.holders = holders
        self._sessions = sessions
        self._failure_log = SparseLog(_log)

    def holds(self, client_id: str) -> bool:
        """Whether a client id is this node's still: no other has asked for it since it was let in."""
        return self.holders.holds(client_id)

    def has_since(self, client_id: str, claim: int) -> bool:
        """Whether this node has taken a client id after another one's ``claim``; if not, it hasn't got it any more."""
        if self.holders.claim(client_id) > claim:
            return True
        self.holders.let_go(client_id)
        return False

    async def admit(self, request: ConnectRequest, verdict: Verdict) -> Verdict:
        """Has a client id taken over before it is accepted; refuses it where that isn't certain."""
        if isinstance(verdict, Challenge):
            return Challenge(verdict.data, lambda data: self._proceed(request, verdict, data))
        if not isinstance(verdict, Accept):
            return verdict
        if not isinstance(verdict.identity, TerminalLink):  # of whom nothing is kept
            return replace(verdict, session_expiry_s=0)
        if request.reauthentication:
            return verdict
        refusal = await take_over(self.holders, request.client_id, self._failure_log)
        return refusal or await self._with_session(request, verdict)

    async def _proceed(self, request: ConnectRequest, challenge: Challenge, data: bytes) -> Verdict:
        return await self.admit(request, await challenge.proceed(data))

    async def _with_session(self, request: ConnectRequest, verdict: Accept) -> Verdict:
        """Has the client's session here before it is let in, wherever it was."""
        try:
            await self._sessions.take(request.client_id, clean=request.clean_start, owner=verdict.owner)
        except (LogFull, LogUnavailable, LogUnusable) as error:
            self._failure_log.warning("%s can't log in: %s", request.client_id, error)
            return Refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, "it isn't known what waits for this client")
        return verdict


async def take_over(holders: Holders, client_id: str, failure_log: SparseLog) -> Refuse | None:
    """Makes a client id this node's; the refusal where that isn't certain."""
    try:
        await holders.take(client_id)
    except (HolderSilent, LogFull, LogUnavailable) as error:
        failure_log.warning("%s can't log in: %s", client_id, error)
        why = "it isn't known where else this client id is connected"
        if isinstance(error, LogFull):
            why = "there is no room to note where this client id is connected"
        return Refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, why)
    return None
