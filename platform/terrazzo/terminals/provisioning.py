"""Terminals that come in by themselves: they show a claim key, are told a pin, and log in with it.

A claim makes no record. What it promises is kept in memory until the terminal logs in with the pin, or for
``limits.provision_s``; each claim of the same terminal replaces the promise before it. With the login the record is
made, in one transaction with the count of the key's uses: a line that is cut anywhere leaves a promise that ends by
itself, or a terminal that is whole. After a restart a terminal claims again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from terrazzo.domain.claims.claim_key import ClaimKey
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.domain.topic_permission import CHANNELS
from terrazzo.errors import Conflict
from terrazzo.metadata.definitions.registry import check_terminal_uid
from terrazzo.reasons import say
from terrazzo.terminals.shown_certificate import names_another
from terrazzo.times import now_us
from terrazzo_broker.hooks import Client, ConnectRequest

CLAIM_USER = "claim"
CLAIM_S = 60.0  # that a connection which claims may stay
MOST_PROMISES = 10_000  # of one company; the oldest makes room
_MOST_UID = 64
_PLAIN_LISTENERS = ("tcp", "ws")
REMOTE = "remote"
"""``ConnectRequest.listener`` of a login at another broker, which asks this platform."""


class ClaimLink(NamedTuple):
    """A connection that claims: ``Client.identity`` in place of a terminal's."""

    key_id: int
    company_id: int


class ClaimRecords(Protocol):
    """Where terminals that were promised become records."""

    async def create_claimed(self, key: ClaimKey, terminal: Terminal, address: str) -> None:
        """Stores the terminal and counts the use of the key, both or neither.

        Raises:
            Conflict: the uid is taken, or the key has been used up, disabled or deleted meanwhile.
        """


class ClaimConnections(Protocol):
    """Connections that claim, at the broker."""

    def tell(self, uid: str, payload: bytes) -> bool:
        """Sends at QoS 1 to this client alone, kept nowhere; False where it has not subscribed at QoS 1."""

    def end(self, uid: str) -> None:
        """Ends its connection and session."""


class ProvisionStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    claims: int = 0  # connections that showed a good key
    claims_refused: int = 0  # the key was known, and didn't let the terminal in
    promises: int = 0
    provisioned: int = 0
    expired: int = 0


class _Promise(msgspec.Struct):
    """A pin that a terminal was told; ``terminal`` is the record that its login will make, without an id."""

    terminal: Terminal
    key_id: int
    expires_us: int


class Provisioning:
    """Lets in terminals that show a claim key.

    Args:
        records: makes the records.
        new_pin: a random pin.
        is_plain_allowed: whether keys are taken over connections without TLS.
        promise_s: seconds that a pin waits for its first login.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        registry: Registry,
        records: ClaimRecords,
        *,
        new_pin: Callable[[], str],
        is_plain_allowed: bool = False,
        promise_s: float = 600.0,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = ProvisionStats()
        self._registry = registry
        self._records = records
        self._new_pin = new_pin
        self._is_plain_allowed = is_plain_allowed
        self._promise_us = int(promise_s * 1_000_000)
        self._clock = clock
        self._connections: ClaimConnections | None = None
        self._promises: dict[str, dict[int, _Promise]] = {}  # by uid and company
        self._oldest: dict[int, OrderedDict[str, None]] = {}  # uids with promises by company, the oldest first
        self._of_key: Counter[int] = Counter()
        self._open: dict[str, tuple[Client, asyncio.TimerHandle]] = {}
        self._turn = asyncio.Lock()
        registry.terminal_changes.listen(self._on_record)
        registry.company_changes.listen(self._on_company)

    def attach(self, connections: ClaimConnections) -> None:
        """Names the broker's side; called once, before it listens."""
        self._connections = connections

    # The claim

    def find_key(self, request: ConnectRequest) -> ClaimKey | None:
        """The claim key that a CONNECT shows, of a company that is open."""
        if request.username != CLAIM_USER or request.password is None:
            return None
        key = self._registry.claim_keys.find(request.password)
        return key if key is not None and self._registry.is_company_available(key.company_id) else None

    def refusal(self, key: ClaimKey, request: ConnectRequest) -> str:
        """Why a claim with a key that is known is refused, for who has shown the key; empty: it is not."""
        uid = request.client_id
        reason = _flaw_of_uid(uid) or key.refusal(
            uid, under_way=self._under_way(key.id, uid, key.company_id), now_us=self._clock()
        )
        if not reason and request.listener == REMOTE:
            reason = "claim at the platform's own broker"  # which alone can tell the pin
        if not reason and request.listener in _PLAIN_LISTENERS and not self._is_plain_allowed:
            reason = "claim over TLS (mqtt.provision_plain)"
        if not reason and not (request.clean_start and (request.protocol < 5 or not request.session_expiry_s)):
            reason = "claim with a clean session"
        if not reason and names_another(request):
            reason = "the client certificate names another terminal"
        if not reason and self._is_anothers(uid, key.company_id):
            reason = "somebody else is claiming this uid"
        self.stats.claims_refused += bool(reason)
        self.stats.claims += not reason
        return reason

    def _is_anothers(self, uid: str, company_id: int) -> bool:
        opened = self._open.get(uid)
        return opened is not None and opened[0].identity.company_id != company_id

    def on_connected(self, client: Client) -> None:
        """A client that claims has come; it may stay for ``CLAIM_S``."""
        opened = self._open.get(client.client_id)
        if opened is not None:  # taken over
            opened[1].cancel()
        timer = asyncio.get_running_loop().call_later(CLAIM_S, self._end, client)
        self._open[client.client_id] = client, timer

    def on_disconnected(self, client: Client) -> None:
        """A client that claimed is gone."""
        opened = self._open.get(client.client_id)
        if opened is not None and opened[0] is client:
            opened[1].cancel()
            del self._open[client.client_id]

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """Tells a client that listens its pin, a new one each time: who asks again has not got it."""
        link, uid = client.identity, client.client_id
        key = self._registry.claim_keys.by_id(link.key_id)
        if f"p2p/{uid}" not in filters or self._connections is None:
            return
        under_way = self._under_way(link.key_id, uid, link.company_id)
        is_good = key is not None and self._registry.is_company_available(link.company_id)
        if key is None or not is_good or key.refusal(uid, under_way=under_way, now_us=self._clock()):
            self._end(client)  # it was good when the client connected
            return
        terminal = self._promise(key, uid)
        told = {"Act": "Provision", "Username": terminal.username, "Pin": terminal.pin, "Mode": terminal.mode}
        if not self._connections.tell(uid, msgspec.json.encode(told)):
            self._forget(uid, key.company_id)

    def _end(self, client: Client) -> None:
        opened = self._open.get(client.client_id)
        if opened is not None and opened[0] is client and self._connections is not None:
            self._connections.end(client.client_id)

    # Promises

    def promised(self, uid: str) -> Iterator[Terminal]:
        """The terminals that a client id may become; of several companies, which are open, the first login decides."""
        now = self._clock()
        for company_id, each in self._promises.get(uid, {}).items():
            if each.expires_us > now and self._registry.is_company_available(company_id):
                yield each.terminal

    async def confirm(self, promised: Terminal, address: str) -> Terminal:
        """Makes the record of a terminal that has logged in with its pin.

        Raises:
            OperationError: it can't be made: the uid is somebody else's by now, the key has no use left, the company
                has as many terminals as it may, or the database is away.
        """
        uid = promised.uid
        async with self._turn:  # the same terminal may have connected twice
            current = self._registry.terminal(uid)
            if current is None:
                promise = self._promises.get(uid, {}).get(promised.company_id)
                key = None if promise is None else self._registry.claim_keys.by_id(promise.key_id)
                is_open = self._registry.is_company_available(promised.company_id)
                if promise is None or key is None or promise.terminal is not promised or not is_open:
                    raise Conflict(say("claim_over"))
                await self._records.create_claimed(key, promised, address)
                self._forget(uid, promised.company_id)
                self.stats.provisioned += 1
                current = self._registry.terminal(uid)
        if current is None or (current.company_id, current.pin) != (promised.company_id, promised.pin):
            raise Conflict(say("terminal_registered_otherwise"))
        return current

    def _promise(self, key: ClaimKey, uid: str) -> Terminal:
        now = self._clock()
        self._expire(key.company_id, now)
        self._forget(uid, key.company_id)
        terminal = Terminal(
            id=0,
            uid=uid,
            name=uid,
            company_id=key.company_id,
            type=key.type,
            mode=key.mode,
            username=uid[:32].strip(),
            pin=self._new_pin(),
            access=key.access,
            topic=key.topic,
            config_id=key.config_id,
        )
        self._promises.setdefault(uid, {})[key.company_id] = _Promise(terminal, key.id, now + self._promise_us)
        uids = self._oldest.setdefault(key.company_id, OrderedDict())
        uids[uid] = None
        self._of_key[key.id] += 1
        self.stats.promises += 1
        if len(uids) > MOST_PROMISES:
            self._forget(next(iter(uids)), key.company_id)
        return terminal

    def _expire(self, company_id: int, now: int) -> None:
        """Ends the promises of a company that nobody has used in time."""
        uids = self._oldest.get(company_id, OrderedDict())
        while uids and self._promises[oldest := next(iter(uids))][company_id].expires_us <= now:
            self._forget(oldest, company_id)
            self.stats.expired += 1

    def _under_way(self, key_id: int, uid: str, company_id: int) -> int:
        """How many other terminals were promised a pin by this key, and have not used it."""
        self._expire(company_id, self._clock())
        own = self._promises.get(uid, {}).get(company_id)
        return self._of_key[key_id] - (own is not None and own.key_id == key_id)

    def _forget(self, uid: str, company_id: int) -> None:
        promise = self._promises.get(uid, {}).pop(company_id, None)
        if promise is None:
            return
        if not self._promises[uid]:
            del self._promises[uid]
        del self._oldest[company_id][uid]
        if not self._oldest[company_id]:
            del self._oldest[company_id]
        self._of_key[promise.key_id] -= 1
        if not self._of_key[promise.key_id]:
            del self._of_key[promise.key_id]

    def _on_company(self, company_id: int, is_available: bool) -> None:
        """Nobody claims with a key of a company that was closed; what it has promised waits."""
        if is_available:
            return
        for client, _ in list(self._open.values()):
            if client.identity.company_id == company_id:
                self._end(client)

    def _on_record(self, before: Terminal | None, after: Terminal | None) -> None:
        """Somebody else has registered the terminal, or it has just logged in: nobody claims it any more."""
        if before is not None or after is None:
            return
        opened = self._open.get(after.uid)
        if opened is not None:
            self._end(opened[0])
        for company_id in [*self._promises.get(after.uid, ())]:
            self._forget(after.uid, company_id)


def _flaw_of_uid(uid: str) -> str:
    """Why a client id can be no terminal's uid; empty where it can."""
    if len(uid) > _MOST_UID:
        return f"the client id has more than {_MOST_UID} characters"
    if uid in CHANNELS:
        return "the client id is a channel's letter"
    try:
        check_terminal_uid(uid)
    except ValueError as error:
        return f"the client id {error}"
    return ""
