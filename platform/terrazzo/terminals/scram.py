"""SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677) as MQTT 5 enhanced authentication [MQTT-4.12].

client-first travels in CONNECT or in the first AUTH, server-first and client-final in AUTH, server-final in CONNACK.
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

from terrazzo.domain.terminal import Terminal
from terrazzo_broker.hooks import Accept, Challenge, ConnectRequest, Refuse, Verdict

METHODS = ("SCRAM-SHA-1", "SCRAM-SHA-256")

SaltedKeys = tuple[bytes, bytes, bytes, int]
"""What a server keeps of a password: salt, stored key, server key, iterations (RFC 5802, section 3)."""

_MAX_CACHED = 20_000


class ScramKeys:
    """The salted keys of terminals, cached because deriving them takes 4,096 rounds of HMAC.

    The salt of a terminal, known or not, stays the same while the process runs: an attempt on an unknown terminal looks
    like one with a wrong pin.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._cache: OrderedDict[tuple[str, str, str], SaltedKeys] = OrderedDict()

    async def derive(self, method: str, uid: str, pin: str) -> SaltedKeys:
        """The keys of a pin; those not cached are derived in a thread, for a millisecond or two."""
        name = (method, uid, pin)
        keys = self._cache.get(name)
        if keys is None:
            keys = await asyncio.to_thread(self._derive, method, uid, pin)
            self._cache[name] = keys
            if len(self._cache) > _MAX_CACHED:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(name)
        return keys

    def _derive(self, method: str, uid: str, pin: str) -> SaltedKeys:
        salt = hmac.digest(self._secret, f"{method}.{uid}".encode(), hashlib.sha256)[:16]
        mechanism = ScramMechanism(method)
        try:
            keys: SaltedKeys = mechanism.make_auth_info(pin, salt=salt)
        except ScramException:  # a pin that SASLprep forbids opens nothing
            keys = mechanism.make_auth_info(secrets.token_hex(), salt=salt)
        return keys


class ScramExchange:
    """One SCRAM authentication: ``start`` answers the CONNECT, the challenges that follow answer the AUTHs.

    Args:
        request: the CONNECT, or the AUTH that begins a re-authentication.
        terminal: whose pin is checked.
        keys: derives the pin's keys.
        accept: makes the verdict on success; takes server-final.
        refuse: makes the verdict on failure.
    """

    def __init__(
        self,
        request: ConnectRequest,
        terminal: Terminal,
        *,
        keys: ScramKeys,
        accept: Callable[[bytes], Accept | Refuse],
        refuse: Callable[[], Refuse],
    ) -> None:
        self._request = request
        self._terminal = terminal
        self._method = request.auth_method or ""
        self._keys = keys
        self._accept = accept
        self._refuse = refuse
        self._server: ScramServer | None = None

    async def start(self) -> Verdict:
        """The verdict on the request: server-first, or an empty challenge where client-first is still to come."""
        if self._request.auth_data:
            return await self._on_client_first(self._request.auth_data)
        return Challenge(b"", self._on_client_first)

    async def _on_client_first(self, data: bytes) -> Verdict:
        keys = await self._keys.derive(self._method, self._request.client_id, self._terminal.pin)
        self._server = ScramMechanism(self._method).make_server(lambda username: self._keys_of(username, keys))
        try:
            self._server.set_client_first(data.decode())
            return Challenge(self._server.get_server_first().encode(), self._on_client_final)
        except (ScramException, UnicodeDecodeError):
            return self._refuse()

    async def _on_client_final(self, data: bytes) -> Verdict:
        assert self._server is not None
        try:
            self._server.set_client_final(data.decode())
            return self._accept(self._server.get_server_final().encode())
        except (ScramException, UnicodeDecodeError):
            return self._refuse()

    def _keys_of(self, username: str, keys: SaltedKeys) -> SaltedKeys:
        """The keys for a user name; for another than the terminal's random ones, so that it fails like a wrong pin."""
        if self._is_named(username) and self._request.username in (None, "", self._terminal.username):
            return keys
        return keys[0], secrets.token_bytes(len(keys[1])), secrets.token_bytes(len(keys[2])), keys[3]

    def _is_named(self, username: str) -> bool:
        try:
            return bool(username == saslprep(self._terminal.username))
        except ScramException:
            return False
