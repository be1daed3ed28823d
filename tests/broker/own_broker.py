"""A broker on a free port of the test's own loop, and clients that are closed with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from raw_client import RawClient
from terrazzo_broker import Accept, Batch, Broker, BrokerSettings, Client, ConnectRequest, PublishGrant
from terrazzo_broker.hooks import Verdict
from terrazzo_broker.refusals import Refusal


@dataclass
class RecordingHooks:
    """Real hooks that allow what a test doesn't forbid, and remember what they were told."""

    verdict: Callable[[ConnectRequest], Awaitable[Verdict]] | None = None
    grant: Callable[[Client, str], PublishGrant | None] = lambda client, topic: PublishGrant(topic)
    may_subscribe: Callable[[Client, str], bool] = lambda client, topic_filter: True
    batches: list[Batch] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    requests: list[ConnectRequest] = field(default_factory=list)

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        self.requests.append(request)
        return Accept("someone") if self.verdict is None else await self.verdict(request)

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        self.asked.append(topic)
        return self.grant(client, topic)

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        return self.may_subscribe(client, topic_filter)

    def take(self, batch: Batch) -> None:
        self.batches.append(batch)

    def on_connected(self, client: Client) -> None:
        self.events.append(("connected", client.client_id))

    def on_disconnected(self, client: Client, reason: str) -> None:
        self.events.append(("disconnected", client.client_id, reason))

    def on_subscribed(self, client: Client, filters: Any) -> None:
        self.events.append(("subscribed", client.client_id, tuple(filters)))


@dataclass
class Running:
    """A broker that listens."""

    broker: Broker
    hooks: RecordingHooks
    port: int
    refusals: list[Refusal] = field(default_factory=list)


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., Awaitable[Running]]]:
    """Starts brokers: ``await start(hooks=..., **settings)``."""
    brokers: list[Broker] = []

    async def _start(hooks: RecordingHooks | None = None, **settings: Any) -> Running:
        settings.setdefault("sweep_interval_s", 0.05)
        settings.setdefault("sys_interval_s", 0)
        hooks = hooks or RecordingHooks()
        refusals: list[Refusal] = []
        broker = Broker(BrokerSettings(**settings), hooks, on_refused=refusals.append)
        brokers.append(broker)
        return Running(broker, hooks, await broker.listen_tcp("127.0.0.1", 0), refusals)

    yield _start
    for broker in brokers:
        await broker.close(1.0)


@pytest.fixture
async def running(start: Callable[..., Awaitable[Running]]) -> Running:
    """A broker with the default settings."""
    return await start()


@pytest.fixture
async def dial(running: Running) -> AsyncIterator[Callable[..., Awaitable[RawClient]]]:
    """Connects clients to ``running``: ``await dial("id", version=4, ...)``; a None id leaves out the CONNECT."""
    clients: list[RawClient] = []

    async def _dial(
        client_id: str | None = "raw", *, version: int = 5, port: int | None = None, **options: Any
    ) -> RawClient:
        client = await RawClient.open(port or running.port, version)
        clients.append(client)
        if client_id is not None:
            client.connack = await client.connect(client_id, **options)  # type: ignore[attr-defined]
        return client

    yield _dial
    for client in clients:
        await client.finish()
