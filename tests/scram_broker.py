"""The embedded broker with hooks that know users, plain or by SCRAM: what clients' log-ins are tested against."""

from __future__ import annotations

import hmac
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mqtt5 import ConnAckReasonCode
from scramp import ScramException, ScramMechanism

from terrazzo_broker import (
    Accept,
    Batch,
    Broker,
    BrokerSettings,
    Challenge,
    Client,
    ConnectRequest,
    Outcome,
    PublishGrant,
    Refuse,
)

METHODS = ("SCRAM-SHA-1", "SCRAM-SHA-256")


class ScramHooks:
    """``plain``, ``scram`` and ``auto`` are user name to secret; each is let in by its own way only."""

    def __init__(self, *, plain: dict[str, str], scram: dict[str, str], auto: dict[str, str]) -> None:
        self.plain, self.scram, self.auto = plain, scram, auto
        self.last_login_s: dict[str, int] = {}
        self.requests: list[ConnectRequest] = []
        self.taken: list[tuple[str, str, bytes, bytes | None]] = []  # client id, topic, payload, correlation data
        self.disconnects: list[tuple[str, str]] = []
        self.subscribed: list[tuple[str, tuple[str, ...]]] = []
        self.refusal = 0  # reason code for what is published from now on, 0 takes it
        self.holding: list[Batch] | None = None  # a list: batches wait in it unsettled
        self.forge_signature = False

    async def authenticate(self, request: ConnectRequest) -> Any:
        self.requests.append(request)
        if request.auth_method is not None:
            return self._begin_scram(request)
        if request.username in self.auto:
            return self._check_auto(request)
        expected = self.plain.get(request.username or "")
        if expected is None or request.password != expected.encode():
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED)
        return Accept(request.username)

    def _check_auto(self, request: ConnectRequest) -> Any:
        """``<unix seconds>.<HMAC-SHA256 of uid and second>``: of these minutes, and later than the last."""
        second, _, digest = (request.password or b"").decode().partition(".")
        key = self.auto[request.username or ""].encode()
        right = hmac.new(key, f"{request.client_id}.{second}".encode(), "sha256").hexdigest() == digest
        fresh = abs(time.time() - int(second)) <= 300 and int(second) > self.last_login_s.get(request.client_id, 0)
        if not (right and fresh):
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED)
        self.last_login_s[request.client_id] = int(second)
        return Accept(request.username)

    def _begin_scram(self, request: ConnectRequest) -> Any:
        if request.auth_method not in METHODS:
            return Refuse(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD)
        mechanism = ScramMechanism(request.auth_method)

        def find(username: str) -> Any:
            if username != request.username or username not in self.scram:
                raise ScramException("no such user")
            return mechanism.make_auth_info(self.scram[username])

        server = mechanism.make_server(find)
        try:
            server.set_client_first((request.auth_data or b"").decode())
            first = server.get_server_first()
        except ScramException:
            return Refuse(ConnAckReasonCode.NOT_AUTHORIZED)

        async def proceed(answer: bytes) -> Any:
            try:
                server.set_client_final(answer.decode())
            except ScramException:
                return Refuse(ConnAckReasonCode.NOT_AUTHORIZED)
            final = b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAA=" if self.forge_signature else server.get_server_final().encode()
            return Accept(request.username, auth_data=final)

        return Challenge(first.encode(), proceed)

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        if topic.startswith(f"g/{client.client_id}/"):
            return PublishGrant(topic, durable=True, tag=topic)
        return None

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        return topic_filter == f"p2p/{client.client_id}"

    def take(self, batch: Batch) -> None:
        for message in batch.messages:
            self.taken.append((batch.client.client_id, message.tag, message.payload, message.correlation_data))
        if self.holding is not None:
            self.holding.append(batch)
        else:
            batch.settle(dict.fromkeys(range(len(batch.messages)), self.refusal) if self.refusal else None)

    def on_connected(self, client: Client) -> None:
        """Nothing to remember: requests are."""

    def on_disconnected(self, client: Client, reason: str) -> None:
        self.disconnects.append((client.client_id, reason))

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        self.subscribed.append((client.client_id, tuple(filters)))


class ScramBroker:
    """A running broker and its hooks."""

    def __init__(self, broker: Broker, hooks: ScramHooks, port: int) -> None:
        self.broker, self.hooks, self.port = broker, hooks, port
        self.outcomes: list[Outcome] = []

    def command(self, uid: str, payload: bytes, correlation: bytes) -> bool:
        """Sends to a terminal; its PUBACK shows in ``outcomes``."""
        return self.broker.send(
            uid,
            f"p2p/{uid}",
            payload,
            correlation_data=correlation,
            response_topic=f"g/{uid}/n",
            on_outcome=self.outcomes.append,
        )


@asynccontextmanager
async def scram_broker(
    *,
    plain: dict[str, str] | None = None,
    scram: dict[str, str] | None = None,
    auto: dict[str, str] | None = None,
    **settings: Any,
) -> AsyncIterator[ScramBroker]:
    hooks = ScramHooks(plain=plain or {}, scram=scram or {}, auto=auto or {})
    broker = Broker(BrokerSettings(**settings), hooks)
    port = await broker.listen_tcp("127.0.0.1", 0)
    try:
        yield ScramBroker(broker, hooks, port)
    finally:
        await broker.close(5)
