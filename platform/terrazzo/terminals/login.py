"""Decides on the CONNECT of a terminal (docs/terminals.md): pwd, auto, SCRAM, cert; deny by default."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

import msgspec
from mqtt5 import ConnAckReasonCode

from terrazzo.domain.certificates.client_certificate import Flaw
from terrazzo.domain.claims.claim_key import ClaimKey
from terrazzo.domain.refusals import reasons
from terrazzo.domain.refusals.login_refused import LoginRefused
from terrazzo.domain.refusals.reasons import Reason
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import OperationError
from terrazzo.listeners import Listeners
from terrazzo.logins.limiter import Attempt, LoginLimiter
from terrazzo.logins.places import Principal
from terrazzo.terminals.auto_times import AutoTimes
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.provisioning import ClaimLink, Provisioning
from terrazzo.terminals.scram import METHODS, ScramExchange, ScramKeys
from terrazzo.terminals.shown_certificate import ShownCertificate, names_another
from terrazzo_broker.hooks import Accept, ConnectRequest, Refuse, Verdict

AUTO_WINDOW_S = 300  # how far the time in an ``auto`` password may be from ours
_MS_DIGITS = 13  # of Unix milliseconds, from the year 2001 to 2286
_DIGEST_CHARS = 64  # of SHA-256, in hexadecimal


class LoginStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    accepted: int = 0
    wrong_credentials: int = 0
    not_authorized: int = 0
    bad_method: int = 0
    throttled: int = 0
    busy: int = 0


class TerminalLogin:
    """Decides which terminals may connect, for all listeners.

    Args:
        registry: the terminals.
        limiter: slows down whoever guesses.
        auto_times: the times in the last accepted ``auto`` passwords; without, a restart forgets them.
        provisioning: lets in terminals that show a claim key; without, nobody does.
        clock: unix seconds.

    Attributes:
        refused: is told of each refused login, thousands a second where somebody guesses.
        unknown: is told of client ids that no terminal has, with the address that they came from and the id of the
            company whose claim key or certificate they showed, or 0.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        limiter: LoginLimiter,
        auto_times: AutoTimes | None = None,
        provisioning: Provisioning | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.stats = LoginStats()
        self.refused: Listeners[LoginRefused] = Listeners("refused logins")
        self.unknown: Listeners[str, str, int] = Listeners("unknown terminals")
        self._registry = registry
        self._limiter = limiter
        self._provisioning = provisioning
        self._clock = clock
        self._scram_keys = ScramKeys()
        self._auto_times = auto_times or AutoTimes()
        self._nobody = _make_nobody()

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Decides on a CONNECT or a re-authentication; counts failures, of which one is what doesn't end."""
        terminal = self._registry.terminal(request.client_id) or self._nobody
        shown = ShownCertificate(request.certificate, self._registry.authorities)
        key = self._claim_key(request) if terminal is self._nobody else None
        if terminal is self._nobody:
            company_id = shown.company_id if key is None else key.company_id
            self.unknown.tell(request.client_id, request.address, company_id)
        attempt = self._limiter.begin(_principal(request, terminal), request.address, self._clock())
        if attempt.wait_s:
            return self._refuse(request, terminal, reasons.THROTTLED)
        if request.auth_method not in (None, *METHODS):
            self._limiter.excuse(attempt)
            return self._refuse(request, terminal, reasons.SCRAM_METHOD)  # [MQTT-4.12.0-1]
        if terminal.mode == "cert":
            return await self._authenticate_certificate(request, terminal, attempt, shown)
        if request.auth_method is not None:
            return await self._authenticate_scram(request, terminal, attempt)
        if key is not None:
            return self._authenticate_claim(request, key, attempt)
        if terminal is self._nobody:
            terminal = self._promised(request, shown) or terminal
        if terminal.mode == "cert":
            return await self._authenticate_certificate(request, terminal, attempt, shown)
        return await self._authenticate_password(request, terminal, attempt)

    def forget(self, terminal: Terminal) -> None:
        """Drops what is kept of the logins of a terminal that was deleted."""
        self._auto_times.forget(terminal.series_name)
        self._scram_keys.forget(terminal.uid)
        self._limiter.forget(terminal.id)

    def forget_places(self, terminal: Terminal) -> None:
        """Drops where a terminal is known to come from: its credentials have changed."""
        self._limiter.forget(terminal.id)

    async def _authenticate_certificate(
        self, request: ConnectRequest, terminal: Terminal, attempt: Attempt, shown: ShownCertificate
    ) -> Verdict:
        """Nothing but the certificate counts. Without a good one the terminal is answered as one that there isn't: the
        same work, code and text, whatever user name, password or method it gives."""
        found = shown.authority_for(terminal, self._clock())
        if not isinstance(found, Flaw):
            registered = await self._registered(request, terminal, attempt)
            if isinstance(registered, Refuse):
                return registered
            return self._admit(request, registered, attempt, authority_id=found.id)
        reason, detail = found

        def refuse(like: Reason) -> Refuse:
            return self._refuse(request, terminal, reason._replace(code=like.code), detail=detail)

        if request.auth_method is not None:
            exchange = ScramExchange(
                request,
                self._nobody,
                keys=self._scram_keys,
                is_known=False,
                accept=lambda final: refuse(reasons.WRONG_PIN),
                refuse=refuse,
                busy=lambda why: self._put_off(request, terminal, attempt, why),
            )
            return await exchange.start()
        if request.username is None or request.password is None:
            return refuse(reasons.NO_CREDENTIALS)
        _check_password(request.username, request.password, self._nobody, request.client_id)
        return refuse(reasons.WRONG_USER_NAME)

    async def _authenticate_scram(self, request: ConnectRequest, terminal: Terminal, attempt: Attempt) -> Verdict:
        exchange = ScramExchange(
            request,
            terminal,
            keys=self._scram_keys,
            is_known=self._limiter.is_known(attempt.principal, request.address),
            accept=lambda final: self._admit(request, terminal, attempt, final),
            refuse=lambda reason: self._refuse(request, terminal, reason),
            busy=lambda why: self._put_off(request, terminal, attempt, why),
        )
        return await exchange.start()

    def _claim_key(self, request: ConnectRequest) -> ClaimKey | None:
        return None if self._provisioning is None else self._provisioning.find_key(request)

    def _authenticate_claim(self, request: ConnectRequest, key: ClaimKey, attempt: Attempt) -> Verdict:
        """The verdict on a claim with a key that there is: it was proven, so reasons are told."""
        assert self._provisioning is not None
        self._limiter.excuse(attempt)
        why = self._provisioning.refusal(key, request)
        if why:
            return self._refuse_claim(request, reasons.CLAIM_REFUSED, why, key.company_id)
        link = ClaimLink(key.id, key.company_id)
        return Accept(identity=link, session_expiry_s=0, owner=str(key.company_id))

    def _promised(self, request: ConnectRequest, shown: ShownCertificate) -> Terminal | None:
        """The terminal that a client id is to become, if the password is that of its pin, or the certificate good."""
        if self._provisioning is None:
            return None
        for terminal in self._provisioning.promised(request.client_id):
            if terminal.mode == "cert":
                if not isinstance(shown.authority_for(terminal, self._clock()), Flaw):
                    return terminal
                continue
            if request.password is None:
                continue
            signed_ms = read_auto_password(request.password, pin=terminal.pin, uid=request.client_id)
            is_pin = _same(request.password, terminal.pin.encode())
            if signed_ms is not None if terminal.mode == "auto" else is_pin:
                return terminal
        return None

    async def _registered(self, request: ConnectRequest, terminal: Terminal, attempt: Attempt) -> Terminal | Refuse:
        """The terminal; its record is made now where it was only promised so far."""
        if terminal.id or self._provisioning is None:
            return terminal
        try:
            return await self._provisioning.confirm(terminal, request.address)
        except OperationError as error:
            self._limiter.excuse(attempt)
            why = f"the terminal can't be registered: {error}"
            return self._refuse_claim(request, reasons.CLAIM_UNFINISHED, why, terminal.company_id)

    async def _authenticate_password(self, request: ConnectRequest, terminal: Terminal, attempt: Attempt) -> Verdict:
        """Computes the same hashes for each client id, whoever has it, and says what was wrong after them."""
        if request.username is None or request.password is None:
            return self._refuse(request, terminal, reasons.NO_CREDENTIALS)
        right_name, right_pin, signed_ms = _check_password(
            request.username, request.password, terminal, request.client_id
        )
        is_signed = terminal.mode == "auto"
        right_password = signed_ms is not None if is_signed else right_pin
        if not (right_name & right_password) or terminal is self._nobody:
            wrong = reasons.WRONG_SIGNATURE if is_signed else reasons.WRONG_PIN
            return self._refuse(request, terminal, wrong if right_name else reasons.WRONG_USER_NAME)
        if terminal.dixie:  # SCRAM only, whatever the password says
            return self._refuse(request, terminal, reasons.SCRAM_REQUIRED, is_proven=True)
        if is_signed and signed_ms is not None:
            return await self._take_signed(request, terminal, attempt, signed_ms)
        found = await self._registered(request, terminal, attempt)
        return found if isinstance(found, Refuse) else self._admit(request, found, attempt)

    async def _take_signed(
        self, request: ConnectRequest, terminal: Terminal, attempt: Attempt, signed_ms: int
    ) -> Accept | Refuse:
        """The verdict on a right signature: its time has to be within the window and later than the last accepted one,
        so that none serves twice."""
        now_ms = int(self._clock() * 1_000)
        ahead_ms = signed_ms - now_ms
        if abs(ahead_ms) > AUTO_WINDOW_S * 1_000:
            off = _distance(ahead_ms)
            return self._refuse(
                request,
                terminal,
                reasons.CLOCK_OFF,
                is_proven=True,
                detail=f"its clock is {off}",
                told=f"your clock is {off}",
            )
        if signed_ms <= self._auto_times.last_ms(terminal.series_name):
            return self._refuse(request, terminal, reasons.REPLAYED, is_proven=True)
        found = await self._registered(request, terminal, attempt)
        if isinstance(found, Refuse):
            return found
        self._auto_times.accept(found.series_name, signed_ms, now_ms=now_ms)
        return self._admit(request, found, attempt)

    def _admit(
        self,
        request: ConnectRequest,
        terminal: Terminal,
        attempt: Attempt,
        auth_data: bytes | None = None,
        *,
        authority_id: int = 0,
    ) -> Accept | Refuse:
        """The verdict on right credentials: the record may disable the terminal, or have changed between two AUTHs."""
        is_current = self._registry.terminal(terminal.uid) is terminal
        if is_current:
            self._limiter.succeed(attempt)
        wrong = _what_keeps_out(terminal, request) if is_current else reasons.RECORD_CHANGED
        if wrong is not None:
            return self._refuse(request, terminal, wrong, is_proven=True)
        self.stats.accepted += 1
        return Accept(
            identity=TerminalLink(terminal, self._registry, authority_id=authority_id),
            keep_alive_s=min(terminal.keep_alive_s, 65_535) or None,
            session_expiry_s=min(terminal.session_expiry_s, 0xFFFF_FFFF) or None,
            auth_data=auth_data,
            owner=terminal.owner,
        )

    def _put_off(self, request: ConnectRequest, terminal: Terminal, attempt: Attempt, why: str) -> Refuse:
        """The verdict where nothing was decided."""
        self._limiter.excuse(attempt)
        return self._refuse(request, terminal, reasons.LOGIN_BUSY, told=why)

    def _refuse_claim(self, request: ConnectRequest, reason: Reason, why: str, company_id: int) -> Refuse:
        """The verdict on who has shown a company's claim key, or knows the pin of a claim with it."""
        return self._refuse(request, self._nobody, reason, is_proven=True, detail=why, told=why, company_id=company_id)

    def _refuse(
        self,
        request: ConnectRequest,
        terminal: Terminal,
        reason: Reason,
        *,
        is_proven: bool = False,
        detail: str = "",
        told: str = "",
        company_id: int = 0,
    ) -> Refuse:
        """Counts a refusal, and tells who listens; ``told``: to the peer, instead of what the reason says."""
        code, field = _ANSWERS[reason.code]
        setattr(self.stats, field, getattr(self.stats, field) + 1)
        is_nobody = terminal is self._nobody
        self.refused.tell(
            LoginRefused(
                reason=reasons.UNKNOWN_TERMINAL if is_nobody and reason in _OF_NOBODY else reason,
                client_id=request.client_id,
                username=request.username or "",
                address=request.address,
                listener=request.listener,
                protocol=request.protocol,
                terminal=None if is_nobody else terminal,
                is_proven=is_proven,
                is_known=self._limiter.is_known(_principal(request, terminal), request.address),
                detail=detail,
                company_id=company_id,
            )
        )
        return Refuse(code, told or reason.told)


_ANSWERS = {
    0x86: (ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, "wrong_credentials"),
    0x87: (ConnAckReasonCode.NOT_AUTHORIZED, "not_authorized"),
    0x89: (ConnAckReasonCode.SERVER_BUSY, "busy"),
    0x8C: (ConnAckReasonCode.BAD_AUTHENTICATION_METHOD, "bad_method"),
    0x9F: (ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, "throttled"),
}
"""The code of the answer, and the field of ``LoginStats`` that counts it."""

_OF_NOBODY = (reasons.WRONG_USER_NAME, reasons.WRONG_PIN, reasons.NO_CREDENTIALS)
"""What is refused for want of a terminal, where nobody has the client id."""


def _what_keeps_out(terminal: Terminal, request: ConnectRequest) -> Reason | None:
    """Why a terminal with right credentials may not come in; None: it may."""
    if not terminal.company_is_available:
        return reasons.COMPANY_CLOSED
    if not terminal.is_available:
        return reasons.TERMINAL_DISABLED
    return reasons.CERTIFICATE_NAME if terminal.mode != "cert" and names_another(request) else None


def _check_password(username: str, password: bytes, terminal: Terminal, uid: str) -> tuple[bool, bool, int | None]:
    """Whether the name is right, the password the pin, and the time that it is signed with, if it is; the same work
    whoever has the client id."""
    right_name = _same(username.encode(), terminal.username.encode())
    right_pin = _same(password, terminal.pin.encode())
    return right_name, right_pin, read_auto_password(password, pin=terminal.pin, uid=uid)


def _distance(ahead_ms: int) -> str:
    """How far a terminal's clock is off: ``3 602 s behind``."""
    seconds = f"{round(abs(ahead_ms) / 1_000):,}".replace(",", " ")
    return f"{seconds} s {'ahead' if ahead_ms > 0 else 'behind'}"


def _principal(request: ConnectRequest, terminal: Terminal) -> Principal:
    return Principal(request.client_id, terminal.id)  # 0 where nobody has the name


def read_auto_password(password: bytes, *, pin: str, uid: str) -> int | None:
    """The time in an ``auto`` password as Unix milliseconds, None when it is malformed or its HMAC is wrong.

    13 digits are milliseconds, up to 12 seconds. How long it takes depends on the password's form alone.
    """
    digits, _, digest = password.partition(b".")
    if len(digest) != _DIGEST_CHARS or len(digits) > _MS_DIGITS or not digits.isdigit():
        return None
    expected = hmac.digest(pin.encode(), uid.encode() + b"." + digits, hashlib.sha256)
    if not hmac.compare_digest(digest.lower(), expected.hex().encode()):
        return None
    return int(digits) if len(digits) == _MS_DIGITS else int(digits) * 1_000


def _same(given: bytes, expected: bytes) -> bool:
    """Compares in constant time, lengths included."""
    return hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(expected).digest())


def _make_nobody() -> Terminal:
    """A terminal with random credentials in place of unknown ones, so that checking them takes the same time."""
    return Terminal(
        id=0,
        uid="",
        name="",
        company_id=0,
        type="",
        mode="pwd",
        username=secrets.token_hex(),
        pin=secrets.token_hex(),
        is_available=False,
    )
