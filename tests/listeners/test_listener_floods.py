"""Honest terminals beside floods from other addresses: they log in, and nearly as fast as without."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil
import pytest

from mqtt_bytes import login
from terrazzo.config.limits import LimitsSection
from terrazzo_broker.settings import BrokerSettings
from waiting import until

HERE = Path(__file__).parent
PACE = 300  # a second; far below what the flood sends
LOGINS = 100
WAITING = 200  # of the flood at a time


@contextmanager
def flood(port: int, kind: str) -> Iterator[None]:
    """Processes of their own that go on from 127.0.0.2 until the end."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "connect_flooder.py"), str(port), kind], stdin=subprocess.PIPE
    )
    try:
        yield
    finally:
        process.communicate(timeout=20)


async def log_in(port: int, name: str, address: str = "127.0.0.3") -> None:
    """An honest login from an address of its own; it has to succeed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(login(name, "u", "p"))
    assert await asyncio.wait_for(reader.readexactly(4), 20) == b"\x20\x02\x00\x00"
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("kind", ["connect", "silent", "large"])
async def test_an_honest_terminal_beside_a_flood_of_connects(start, kind):
    """How long a login takes is counted in what the broker did for the flood meanwhile: seconds are the machine's."""
    broker = start(connects_per_second=PACE, half_open_per_address=WAITING)
    port = await broker.listen_tcp("127.0.0.1", 0)
    before, memory = broker.stats.accepted, psutil.Process().memory_info().rss
    asked, accepted = [], []
    with flood(port, kind):
        await until(lambda: broker.stats.accepted > before + 500, 20)
        for n in range(LOGINS):
            had_asked, had_accepted = len(broker.hooks.requests), broker.stats.accepted
            await log_in(port, f"honest {n}")
            asked.append(len(broker.hooks.requests) - had_asked - 1)
            accepted.append(broker.stats.accepted - had_accepted - 1)
            await asyncio.sleep(0.01)  # so that they spread over the flood
        assert broker.core.admission.half_open.count <= WAITING + 10
        assert broker.stats.accepted > before + 1_000
    assert max(asked) < WAITING * 3 // 4, "in turn, not behind all that wait"
    assert median(asked) < WAITING // 8
    assert median(accepted) < 2 * WAITING
    assert psutil.Process().memory_info().rss - memory < 64 << 20
    await until(lambda: broker.stats.connections == 0, 20)


async def test_a_flood_of_connects_gets_its_share_of_the_pace(start):
    """What the others don't need is the flood's; nobody is let through faster than the pace."""
    broker = start(connects_per_second=PACE, half_open_per_address=WAITING)
    port = await broker.listen_tcp("127.0.0.1", 0)
    with flood(port, "connect"):
        await until(lambda: len(broker.hooks.requests) > 2 * PACE * 0.05, 20)
        began_s, before = time.monotonic(), len(broker.hooks.requests)
        await until(lambda: len(broker.hooks.requests) > before + 2 * PACE, 20)
        assert 1.8 < time.monotonic() - began_s < 10
    assert broker.stats.connects_delayed > PACE


async def test_terminals_of_many_addresses_come_back_at_once_beside_a_flood(start):
    """None is refused, and the flood has the turns of one address, not those of its connections."""
    broker = start(connects_per_second=PACE, half_open_per_address=WAITING)
    port = await broker.listen_tcp("127.0.0.1", 0)
    with flood(port, "connect"):
        await until(lambda: broker.stats.connects_delayed > PACE, 20)
        before = len(broker.hooks.requests)
        await asyncio.gather(*(log_in(port, f"back {n}", f"127.2.{n % 50}.{n % 7 + 1}") for n in range(2 * PACE)))
        asked = broker.hooks.requests[before:]
    ours = [request for request in asked if request.client_id.startswith("back ")]
    assert len(ours) == 2 * PACE
    assert len(asked) - len(ours) < PACE // 4, "one turn for all that the other addresses have in a round"


def test_as_many_may_wait_as_may_be_connected():
    """After a restart all of them wait at once: one that displaces another only puts it off."""
    settings = BrokerSettings()
    assert settings.half_open >= settings.connections
    assert settings.connects_per_second * settings.connect_timeout_s >= settings.connections
    limits = LimitsSection()
    assert (limits.half_open, limits.connects_per_second) == (settings.half_open, settings.connects_per_second)
    assert limits.half_open >= limits.connections
