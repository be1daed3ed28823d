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
import importlib
import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from terrazzo.domain.refusals import reasons
from terrazzo.domain.refusals.reasons import Reason
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import Throttled, Unavailable
from terrazzo.logins.turns import CheckTurns
from terrazzo_broker.hooks import Accept, Challenge, ConnectRequest, Refuse, Verdict

if TYPE_CHECKING:
    from terrazzo.terminals.scram_server import Begun

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
_DIGEST_BYTES = {"SCRAM-SHA-1": 20, "SCRAM-SHA-256": 32}
_SERVER = "terrazzo.terminals.scram_server"


async def _loaded() -> ModuleType:
    """What works out SCRAM, loaded in a thread by the first who needs it."""
    found = sys.modules.get(_SERVER)
    if found is not None and hasattr(found, "is_prepared"):  # its last name: it isn't being loaded elsewhere
        return found
    return await asyncio.to_thread(importlib.import_module, _SERVER)


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
        size = _DIGEST_BYTES[method]
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
            server = await _loaded()
            return await asyncio.to_thread(self._derive, server, method, terminal.uid, terminal.pin)

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

    def _derive(self, server: ModuleType, method: str, uid: str, pin: str) -> SaltedKeys:
        nothing = self.none(method, uid)
        keys: SaltedKeys | None = server.derive(method, pin, nothing[0], _ITERATIONS)
        return keys or nothing  # a pin that SASLprep forbids opens nothing


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
        self._server: ModuleType

    async def start(self) -> Verdict:
        """The verdict on the request: server-first, or an empty challenge where client-first is still to come."""
        if self._request.auth_data:
            return await self._on_client_first(self._request.auth_data)
        return Challenge(b"", self._on_client_first)

    async def _on_client_first(self, data: bytes) -> Verdict:
        if len(data) > MOST_MESSAGE:
            return self._refuse(reasons.SCRAM_MESSAGE)
        self._server = await _loaded()
        try:
            self._first = data.decode()
            begun = self._begin(self._keys.none(self._method, self._request.client_id))
        except ValueError:
            return self._refuse(reasons.SCRAM_MESSAGE)
        self._username = begun.username
        return Challenge(begun.server_first.encode(), self._on_client_final)

    def _begin(self, keys: SaltedKeys) -> Begun:
        """A server with these keys that has had client-first."""
        begun: Begun = self._server.begin(self._method, self._first, keys, nonce=self._nonce)
        return begun

    async def _on_client_final(self, data: bytes) -> Verdict:
        if len(data) > MOST_MESSAGE:
            return self._refuse(reasons.SCRAM_MESSAGE)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            keys = await self._right_keys()
        except (Throttled, Unavailable) as error:
            return self._busy(str(error))
        try:
            server_final = self._begin(keys).finish(data.decode())
        except ValueError:
            await asyncio.sleep(REFUSED_S - (loop.time() - began_s))
            return self._refuse(reasons.WRONG_PIN if self._has_right_name() else reasons.WRONG_USER_NAME)
        self._keys.keep(self._method, self._terminal, keys)
        return self._accept(server_final.encode())

    async def _right_keys(self) -> SaltedKeys:
        """The terminal's keys; for another user name than its own those that fail like a wrong pin."""
        if self._has_right_name():
            return await self._keys.of(self._method, self._terminal, self._request.address, is_known=self._is_known)
        return self._keys.none(self._method, self._request.client_id)

    def _has_right_name(self) -> bool:
        """Whether the names in the exchange and in the CONNECT are the terminal's."""
        is_named = self._server.is_prepared(self._username, self._terminal.username)
        return is_named and self._request.username in (None, "", self._terminal.username)
