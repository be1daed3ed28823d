"""Decides on the CONNECT of a terminal (docs/terminals.md): pwd, auto, SCRAM; deny by default."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable

import msgspec
from mqtt5 import ConnAckReasonCode

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.logins.limiter import Attempt, LoginLimiter
from terrazzo.logins.places import Principal
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.auto_times import AutoTimes
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.scram import METHODS, ScramExchange, ScramKeys
from terrazzo_broker.hooks import Accept, ConnectRequest, Refuse, Verdict

AUTO_WINDOW_S = 300  # how far the time in an ``auto`` password may be from ours

_log = logging.getLogger(__name__)


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
        clock: unix seconds.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        limiter: LoginLimiter,
        auto_times: AutoTimes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.stats = LoginStats()
        self._registry = registry
        self._limiter = limiter
        self._clock = clock
        self._scram_keys = ScramKeys()
        self._auto_times = auto_times or AutoTimes()
        self._nobody = _make_nobody()
        self._throttle_log = SparseLog(_log)

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Decides on a CONNECT or a re-authentication; counts failures, of which one is what doesn't end."""
        terminal = self._registry.terminal(request.client_id) or self._nobody
        attempt = self._limiter.begin(_principal(request, terminal), request.address, self._clock())
        if attempt.wait_s:
            self.stats.throttled += 1
            self._throttle_log.warning("logins of %s from %s are throttled", request.client_id, request.address)
            return Refuse(ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, "too many failed logins, try again later")
        if request.auth_method is not None:
            return await self._authenticate_scram(request, terminal, attempt)
        return self._authenticate_password(request, terminal, attempt)

    def forget(self, terminal: Terminal) -> None:
        """Drops what is kept of the logins of a terminal that was deleted."""
        self._auto_times.forget(terminal.series_name)
        self._scram_keys.forget(terminal.uid)
        self._limiter.forget(terminal.id)

    def forget_places(self, terminal: Terminal) -> None:
        """Drops where a terminal is known to come from: its credentials have changed."""
        self._limiter.forget(terminal.id)

    async def _authenticate_scram(self, request: ConnectRequest, terminal: Terminal, attempt: Attempt) -> Verdict:
        if request.auth_method not in METHODS:
            self.stats.bad_method += 1
            self._limiter.excuse(attempt)
            return Refuse(
                ConnAckReasonCode.BAD_AUTHENTICATION_METHOD, f"methods: {', '.join(METHODS)}"
            )  # [MQTT-4.12.0-1]
        exchange = ScramExchange(
            request,
            terminal,
            keys=self._scram_keys,
            is_known=self._limiter.is_known(attempt.principal, request.address),
            accept=lambda final: self._admit(request, terminal, attempt, final),
            refuse=lambda: self._fail(ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD),
            busy=lambda reason: self._put_off(attempt, reason),
        )
        return await exchange.start()

    def _authenticate_password(self, request: ConnectRequest, terminal: Terminal, attempt: Attempt) -> Verdict:
        if request.username is None or request.password is None:
            return self._fail(ConnAckReasonCode.NOT_AUTHORIZED)
        auto_s = None
        right_password = _same(request.password, terminal.pin.encode())
        if terminal.mode == "auto":
            auto_s = read_auto_password(request.password, terminal)
            right_password = auto_s is not None and self._is_fresh(terminal.series_name, auto_s)
        right_name = _same(request.username.encode(), terminal.username.encode())
        if not (right_name & right_password) or terminal is self._nobody:
            return self._fail(ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD)
        if terminal.dixie:  # SCRAM only, whatever the password says
            return self._fail(ConnAckReasonCode.NOT_AUTHORIZED)
        if auto_s is not None:
            self._auto_times.accept(terminal.series_name, auto_s, now_s=self._clock())
        return self._admit(request, terminal, attempt)

    def _is_fresh(self, name: str, time_s: int) -> bool:
        """Whether a password's time is within the window and later than the last accepted one: none serves twice."""
        return abs(time_s - self._clock()) <= AUTO_WINDOW_S and time_s > self._auto_times.last(name)

    def _admit(
        self, request: ConnectRequest, terminal: Terminal, attempt: Attempt, auth_data: bytes | None = None
    ) -> Accept | Refuse:
        """The verdict on right credentials: the record may disable the terminal, or have changed between two AUTHs."""
        is_current = self._registry.terminal(terminal.uid) is terminal
        if is_current:
            self._limiter.succeed(attempt)
        if not is_current or not terminal.is_admitted:
            self.stats.not_authorized += 1
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "the terminal or its company is disabled")
        if request.certificate_name not in (None, terminal.uid):
            self.stats.not_authorized += 1
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "the client certificate names another terminal")
        self.stats.accepted += 1
        return Accept(
            identity=TerminalLink(terminal, self._registry),
            keep_alive_s=min(terminal.keep_alive_s, 65_535) or None,
            session_expiry_s=min(terminal.session_expiry_s, 0xFFFF_FFFF) or None,
            auth_data=auth_data,
            owner=terminal.owner,
        )

    def _put_off(self, attempt: Attempt, reason: str) -> Refuse:
        """The verdict where nothing was decided."""
        self.stats.busy += 1
        self._limiter.excuse(attempt)
        return Refuse(ConnAckReasonCode.SERVER_BUSY, reason)

    def _fail(self, reason: ConnAckReasonCode) -> Refuse:
        if reason is ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD:
            self.stats.wrong_credentials += 1
        else:
            self.stats.not_authorized += 1
        return Refuse(reason, "wrong or missing credentials")


def _principal(request: ConnectRequest, terminal: Terminal) -> Principal:
    return Principal(request.client_id, terminal.id)  # 0 where nobody has the name


def read_auto_password(password: bytes, terminal: Terminal) -> int | None:
    """The unix seconds of an ``auto`` password, None when it is malformed or its HMAC is wrong."""
    seconds, _, digest = password.partition(b".")
    expected = hmac.digest(terminal.pin.encode(), terminal.uid.encode() + b"." + seconds, hashlib.sha256)
    well_formed = len(seconds) <= 12 and seconds.isdigit()
    if not _same(digest.lower(), expected.hex().encode()) or not well_formed:
        return None
    return int(seconds)


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
