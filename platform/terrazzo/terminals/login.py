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
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.auto_times import AutoTimes
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.scram import METHODS, ScramExchange, ScramKeys
from terrazzo.throttle import Throttle
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


class TerminalLogin:
    """Decides which terminals may connect, for all listeners.

    Args:
        registry: the terminals.
        failures: limits failed logins, by address and by terminal; None: no limit.
        auto_times: the times in the last accepted ``auto`` passwords; without, a restart forgets them.
        clock: unix seconds.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        failures: Throttle | None = None,
        auto_times: AutoTimes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.stats = LoginStats()
        self._registry = registry
        self._failures = failures
        self._clock = clock
        self._scram_keys = ScramKeys()
        self._auto_times = auto_times or AutoTimes()
        self._address_of: dict[str, str] = {}  # uid -> where it last logged in from
        self._nobody = _make_nobody()
        self._throttle_log = SparseLog(_log)

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Decides on a CONNECT or a re-authentication; counts failures."""
        if self._is_throttled(request):
            self.stats.throttled += 1
            self._throttle_log.warning("logins of %s from %s are throttled", request.client_id, request.address)
            return Refuse(ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, "too many failed logins, try again later")
        terminal = self._registry.terminal(request.client_id) or self._nobody
        if request.auth_method is not None:
            return await self._authenticate_scram(request, terminal)
        return self._authenticate_password(request, terminal)

    def forget(self, uid: str) -> None:
        """Drops what is kept of the logins of a terminal that was deleted."""
        self._auto_times.forget(uid)
        self._address_of.pop(uid, None)

    async def _authenticate_scram(self, request: ConnectRequest, terminal: Terminal) -> Verdict:
        if request.auth_method not in METHODS:
            self.stats.bad_method += 1
            return Refuse(
                ConnAckReasonCode.BAD_AUTHENTICATION_METHOD, f"methods: {', '.join(METHODS)}"
            )  # [MQTT-4.12.0-1]
        exchange = ScramExchange(
            request,
            terminal,
            keys=self._scram_keys,
            accept=lambda final: self._admit(request, terminal, final),
            refuse=lambda: self._fail(request, ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD),
        )
        return await exchange.start()

    def _authenticate_password(self, request: ConnectRequest, terminal: Terminal) -> Verdict:
        if request.username is None or request.password is None:
            return self._fail(request, ConnAckReasonCode.NOT_AUTHORIZED)
        auto_s = None
        right_password = _same(request.password, terminal.pin.encode())
        if terminal.mode == "auto":
            auto_s = read_auto_password(request.password, terminal)
            right_password = auto_s is not None and self._is_fresh(terminal.uid, auto_s)
        right_name = _same(request.username.encode(), terminal.username.encode())
        if not (right_name & right_password) or terminal is self._nobody:
            return self._fail(request, ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD)
        if terminal.dixie:  # SCRAM only, whatever the password says
            return self._fail(request, ConnAckReasonCode.NOT_AUTHORIZED)
        if auto_s is not None:
            self._auto_times.accept(terminal.uid, auto_s, now_s=self._clock())
        return self._admit(request, terminal)

    def _is_fresh(self, uid: str, time_s: int) -> bool:
        """Whether a password's time is within the window and later than the last accepted one: none serves twice."""
        return abs(time_s - self._clock()) <= AUTO_WINDOW_S and time_s > self._auto_times.last(uid)

    def _admit(self, request: ConnectRequest, terminal: Terminal, auth_data: bytes | None = None) -> Accept | Refuse:
        """The verdict on right credentials: the record may disable the terminal, or have changed between two AUTHs."""
        if not terminal.is_available or self._registry.terminal(terminal.uid) is not terminal:
            self.stats.not_authorized += 1
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "the terminal is disabled")
        if request.certificate_name not in (None, terminal.uid):
            self.stats.not_authorized += 1
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "the client certificate names another terminal")
        self.stats.accepted += 1
        if self._failures is not None:  # the address's failures stay: one good account must not cover guesses at others
            self._failures.succeed(self._keys(request)[0])
        self._address_of[terminal.uid] = request.address
        return Accept(
            identity=TerminalLink(terminal, self._registry),
            keep_alive_s=min(terminal.keep_alive_s, 65_535) or None,
            session_expiry_s=min(terminal.session_expiry_s, 0xFFFF_FFFF) or None,
            auth_data=auth_data,
            owner=str(terminal.company_id),
        )

    def _fail(self, request: ConnectRequest, reason: ConnAckReasonCode) -> Refuse:
        if reason is ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD:
            self.stats.wrong_credentials += 1
        else:
            self.stats.not_authorized += 1
        if self._failures is not None:
            now_s = self._clock()
            for key in self._keys(request):
                self._failures.fail(key, now_s)
        return Refuse(reason, "wrong or missing credentials")

    def _is_throttled(self, request: ConnectRequest) -> bool:
        now_s = self._clock()
        return self._failures is not None and any(not self._failures.check(key, now_s) for key in self._keys(request))

    def _keys(self, request: ConnectRequest) -> tuple[str, ...]:
        """The throttle's keys for a request.

        A terminal at the address of its last login has a count of its own: neither a stranger who tries its name
        elsewhere nor a neighbour with a wrong pin behind the same router locks it out.
        """
        uid, address = request.client_id, request.address
        if self._address_of.get(uid) == address:
            return (f"terminal {uid} at {address}",)
        return (f"terminal {uid}", f"address {address}")


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
