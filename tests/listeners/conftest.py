"""Brokers, clients and certificates that end with the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from listener_stand import Peer, RememberingHooks

from certificate_authority import Authority
from terrazzo_broker import Broker, BrokerSettings


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Each test runs on both loops: transports and TLS differ between them."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def loop_errors() -> AsyncIterator[list[dict[str, Any]]]:
    """What reached the loop's exception handler; nothing should."""
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    yield errors
    assert errors == []


@pytest.fixture
async def start(loop_errors: list[dict[str, Any]]) -> AsyncIterator[Callable[..., Broker]]:
    """Makes brokers that don't listen yet: ``start(**settings)``."""
    brokers: list[Broker] = []

    def _start(**settings: Any) -> Broker:
        settings = {"sweep_interval_s": 0.05, "sys_interval_s": 0, **settings}
        brokers.append(Broker(BrokerSettings(**settings), RememberingHooks()))
        return brokers[-1]

    yield _start
    for broker in brokers:
        await broker.close(1.0)
        assert broker.stats.connections == broker.stats.clients == 0


@pytest.fixture
async def dial() -> AsyncIterator[Callable[..., Awaitable[Peer]]]:
    """Opens streams: ``await dial(port, ssl=...)``."""
    peers: list[Peer] = []

    async def _dial(port: int, **options: Any) -> Peer:
        peers.append(await Peer.open(port, **options))
        return peers[-1]

    yield _dial
    for peer in peers:
        await peer.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """An authority that has issued nothing yet."""
    return Authority(tmp_path / "authority")
