"""Refused logins by the hundred thousand, without sockets: all parts that a refused login touches, put together."""

from __future__ import annotations

from collections.abc import Iterator

from terrazzo.diagnostics.journal import RefusalJournal
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.terminals.login import TerminalLogin
from terrazzo.terminals.unknown import UnknownTerminals
from terrazzo_broker.hooks import ConnectRequest, Refuse
from terrazzo_broker.refusals import Cause, Refusal

KNOWN = 100  # terminals whose uids strangers have guessed


class LoginFlood:
    """A login with its limiter, the list of unknown terminals, and the journal of refusals, which writes nothing."""

    def __init__(self) -> None:
        self.registry = Registry()
        for number in range(1, KNOWN + 1):
            self.registry.put_terminal(
                Terminal(
                    id=number,
                    uid=f"t{number}",
                    name="",
                    company_id=number % 10,
                    type="",
                    mode=("pwd", "auto", "cert")[number % 3],
                    username="u",
                    pin="p",
                )
            )
        self.now_s = 1_780_000_000.0
        self.limiter = LoginLimiter(10, 300)
        self.journal = RefusalJournal(self.registry, None, most=50_000, clock=lambda: int(self.now_s * 1_000_000))
        self.unknown = UnknownTerminals(self.registry, clock=lambda: int(self.now_s * 1_000_000))
        self.login = TerminalLogin(self.registry, limiter=self.limiter, clock=lambda: self.now_s)
        self.login.refused.listen(self.journal.on_login_refused)
        self.login.unknown.listen(self.unknown.note)
        self.login.refused.listen(self.unknown.note_refused)

    async def go_on(self, first: int, count: int) -> None:
        """So many logins from addresses and under client ids that were not there before, some of them a terminal's, and
        a failed handshake with each; 10,000 in a second of the clock."""
        for number in range(first, first + count):
            self.now_s += 0.000_1
            uid = f"t{number % KNOWN + 1}" if number % 4 == 0 else f"stranger {number} {'x' * (number % 200)}"
            address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            request = ConnectRequest(client_id=uid, username=f"user {number}", password=b"guess", address=address)
            assert isinstance(await self.login.authenticate(request), Refuse)
            self.journal.on_refusal(Refusal(Cause.TLS_FAILED, address, detail=f"failure {number}"))

    def sizes(self) -> Iterator[tuple[str, int]]:
        """How many entries each table has that strangers write into."""
        limiter, journal, unknown = self.limiter, self.journal, self.unknown
        for name in ("_records", "_strangers", "_addresses", "_waiting"):
            yield f"limiter{name}", len(getattr(limiter, name))
        for name in ("_touched", "_unwritten"):
            yield f"journal{name}", len(getattr(journal, name))
        yield "journal addresses", len(journal._book._addresses)
        yield "journal terminals", journal.stats.kept
        yield "unknown strangers", len(unknown._strangers)
        yield "unknown claimed", len(unknown._claimed)
        yield "unknown reasons", len(unknown._reasons)
