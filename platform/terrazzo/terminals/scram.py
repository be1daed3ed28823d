"""SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677) as MQTT 5 enhanced authentication [MQTT-4.12].

client-first travels in CONNECT or in the first AUTH, server-first and client-final in AUTH, server-final in CONNACK.

A stranger must learn nothing of who exists, and cost little. server-first needs a salt alone, which any name has. Keys
are derived when client-final is there, and only of a terminal's pin; a name that nobody has fails without. How long
either takes doesn't show: a refusal comes after a fixed time.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable

from scramp import ScramException, ScramMechanism
from scramp.core import ScramServer
from scramp.utils import saslprep

from terrazzo.domain.refusals import reasons
from terrazzo.domain.refusals.reasons import Reason
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import Throttled, Unavailable
from terrazzo.logins.turns import CheckTurns
from terrazzo_broker.hooks import Accept, Challenge, ConnectRequest, Refuse, Verdict

METHODS = ("SCRAM-SHA-1", "SCRAM-SHA-256")

SaltedKeys = tuple[bytes, bytes, bytes, int]
"""What a server keeps of a password: salt, stored key, server key, iterations (RFC 5802, section 3)."""

REFUSED_S = (
    0.05  # from client-final to a refusal, whatever was found out: a derivation takes 2 ms, more on a busy machine
)
MOST_MESSAGE = 2_048  # bytes of a client's message; what SASLprep does to a name is quadratic in its length
_MAX_CACHED = 20_000
_ITERATIONS = 4_096
_DERIVED_AT_ONCE = 2


class ScramKeys:
    """The salted keys of terminals, cached because deriving them takes 4,096 rounds of HMAC.

    Keys are kept of terminals alone that have proven their pins, so that no stranger pushes them out. The salt of a
    name, a terminal's or nobody's, stays the same while the process runs.
    """

    def __init__(self) -> None:
        self.turns = CheckTurns(_DERIVED_AT_ONCE)
        self._secret = secrets.token_bytes(32)
        self._cache: OrderedDict[tuple[str, str], tuple[str, SaltedKeys]] = OrderedDict()

    def none(self, method: str, uid: str) -> SaltedKeys:
        """Keys that nothing opens, with the salt of this name."""
        salt = hmac.digest(self._secret, f"{method}.{uid}".encode(), hashlib.sha256)[:16]
        size = ScramMechanism(method).hf().digest_size
        return salt, secrets.token_bytes(size), secrets.token_bytes(size), _ITERATIONS

    async def of(self, method: str, terminal: Terminal, address: str, *, is_known: bool) -> SaltedKeys:
        """The keys of a terminal's pin; those not cached are derived in a thread, in turn by address.

        Raises:
            Throttled, Unavailable: too many wait for theirs.
        """
        pin, keys = self._cache.get((method, terminal.uid), ("", None))
        if keys is not None and pin == terminal.pin:
            return keys
        async with self.turns.turn(address, is_known=is_known):
            return await asyncio.to_thread(self._derive, method, terminal.uid, terminal.pin)

    def keep(self, method: str, terminal: Terminal, keys: SaltedKeys) -> None:
        """Keeps the keys of a terminal that has proven its pin."""
        self._cache[method, terminal.uid] = (terminal.pin, keys)
        self._cache.move_to_end((method, terminal.uid))
        if len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)

    def forget(self, uid: str) -> None:
        """Drops the keys of a terminal that was deleted."""
        for method in METHODS:
            self._cache.pop((method, uid), None)

    def _derive(self, method: str, uid: str, pin: str) -> SaltedKeys:
        nothing = self.none(method, uid)
        try:
            keys: SaltedKeys = ScramMechanism(method).make_auth_info(pin, _ITERATIONS, nothing[0])
        except ScramException:  # a pin that SASLprep forbids opens nothing
            return nothing
        return keys


class ScramExchange:
    """One SCRAM authentication: ``start`` answers the CONNECT, the challenges that follow answer the AUTHs.

    Args:
        request: the CONNECT, or the AUTH that begins a re-authentication.
        terminal: whose pin is checked.
        keys: has the pin's keys.
        is_known: whether the terminal is known where the request comes from.
        accept: makes the verdict on success; takes server-final.
        refuse: makes the verdict on failure; takes why, which the peer is not told.
        busy: makes the verdict where too many wait; takes what to say.
    """

    def __init__(
        self,
        request: ConnectRequest,
        terminal: Terminal,
        *,
        keys: ScramKeys,
        is_known: bool,
        accept: Callable[[bytes], Accept | Refuse],
        refuse: Callable[[Reason], Refuse],
        busy: Callable[[str], Refuse],
    ) -> None:
        self._request = request
        self._terminal = terminal
        self._method = request.auth_method or ""
        self._keys = keys
        self._is_known = is_known
        self._accept = accept
        self._refuse = refuse
        self._busy = busy
        self._nonce = secrets.token_hex()
        self._first = ""
        self._username = ""

    async def start(self) -> Verdict:
        """The verdict on the request: server-first, or an empty challenge where client-first is still to come."""
        if self._request.auth_data:
            return await self._on_client_first(self._request.auth_data)
        return Challenge(b"", self._on_client_first)

    async def _on_client_first(self, data: bytes) -> Verdict:
        if len(data) > MOST_MESSAGE:
            return self._refuse(reasons.SCRAM_MESSAGE)
        try:
            self._first = data.decode()
            _, server_first = self._begin(self._keys.none(self._method, self._request.client_id))
        except (ScramException, UnicodeDecodeError):
            return self._refuse(reasons.SCRAM_MESSAGE)
        return Challenge(server_first.encode(), self._on_client_final)

    def _begin(self, keys: SaltedKeys) -> tuple[ScramServer, str]:
        """A server with these keys that has had client-first, and its server-first, each time the same."""

        def keys_of(username: str) -> SaltedKeys:
            self._username = username
            return keys

        server = ScramMechanism(self._method).make_server(keys_of, s_nonce=self._nonce)
        server.set_client_first(self._first)
        return server, server.get_server_first()

    async def _on_client_final(self, data: bytes) -> Verdict:
        if len(data) > MOST_MESSAGE:
            return self._refuse(reasons.SCRAM_MESSAGE)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            keys = await self._right_keys()
        except (Throttled, Unavailable) as error:
            return self._busy(str(error))
        server, _ = self._begin(keys)
        try:
            server.set_client_final(data.decode())
        except (ScramException, UnicodeDecodeError):
            await asyncio.sleep(REFUSED_S - (loop.time() - began_s))
            return self._refuse(reasons.WRONG_PIN if self._has_right_name() else reasons.WRONG_USER_NAME)
        self._keys.keep(self._method, self._terminal, keys)
        return self._accept(server.get_server_final().encode())

    async def _right_keys(self) -> SaltedKeys:
        """The terminal's keys; for another user name than its own those that fail like a wrong pin."""
        if self._has_right_name():
            return await self._keys.of(self._method, self._terminal, self._request.address, is_known=self._is_known)
        return self._keys.none(self._method, self._request.client_id)

    def _has_right_name(self) -> bool:
        """Whether the names in the exchange and in the CONNECT are the terminal's."""
        return self._is_named(self._username) and self._request.username in (None, "", self._terminal.username)

    def _is_named(self, username: str) -> bool:
        try:
            return bool(username == saslprep(self._terminal.username))
        except ScramException:
            return False
