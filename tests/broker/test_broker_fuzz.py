"""Random and mutated packets: the broker answers or closes, stays up, and forgets the connection.

``make long`` sends a million; ``TERRAZZO_FUZZ_PACKETS`` and ``TERRAZZO_FUZZ_SEED`` make it another run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random

import pytest
from packet_table import BAD, BAD_CONNECTS, CONNECTS, GOOD, connect

from length import rounds
from raw_client import TIMEOUT_S, RawClient, publish_4, until
from terrazzo_broker import Broker

PACKETS = int(os.environ.get("TERRAZZO_FUZZ_PACKETS", rounds(100_000, 1_000_000)))
SEED = int(os.environ.get("TERRAZZO_FUZZ_SEED", "20231"))
PATIENCE_S = 0.05  # with a broker that has nothing to say to what it was sent


def mutated(chance: random.Random, data: bytes) -> bytes:
    """``data`` with a few bytes changed, cut out, doubled or put in."""
    changed = bytearray(data)
    for _ in range(chance.randint(0, 4)):
        at = chance.randrange(len(changed) + 1)
        kind = chance.randrange(4)
        if kind == 0 and at < len(changed):
            changed[at] = chance.randrange(256)
        elif kind == 1:
            changed[at:at] = chance.randbytes(chance.randint(1, 4))
        elif kind == 2:
            del changed[at : at + chance.randint(1, 3)]
        else:
            changed[at:at] = changed[at : at + 8]
    return bytes(changed)


def packets(chance: random.Random) -> list[bytes]:
    """What one connection sends: a CONNECT, good and bad packets of one version, and pure noise."""
    version = chance.choice((4, 5))
    first = connect(version=version) if chance.random() < 0.9 else chance.choice(CONNECTS + BAD_CONNECTS).data
    rows = [row.data for row in GOOD + BAD if row.version == version] + [publish_4("a", b"x", qos=1, packet_id=3)]
    sent = [mutated(chance, chance.choice(rows)) for _ in range(chance.randint(1, 30))]
    if chance.random() < 0.1:
        sent.append(chance.randbytes(chance.randint(1, 64)))
    return [mutated(chance, first) if chance.random() < 0.1 else first, *sent]


async def attack(port: int, chance: random.Random, goal: int) -> int:
    """Opens connections one after the other until ``goal`` packets are sent; how many were."""
    count = 0
    while count < goal:
        sent = packets(chance)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"".join(sent))
            await writer.drain()
            async with asyncio.timeout(PATIENCE_S):
                while await reader.read(4096):
                    pass
        except (TimeoutError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
        count += len(sent)
    return count


@pytest.mark.timeout(max(180, PACKETS // 1000))
async def test_fuzz(start, caplog):
    running = await start(connects_per_second=1 << 30)
    broker: Broker = running.broker
    caplog.set_level(logging.ERROR)
    chance = random.Random(SEED)
    attacks = [attack(running.port, random.Random(chance.random()), PACKETS // 16) for _ in range(16)]
    assert sum(await asyncio.gather(*attacks)) >= PACKETS // 16 * 16
    await until(lambda: not broker.stats.connections, timeout_s=TIMEOUT_S)
    assert [record.getMessage() for record in caplog.records] == []
    assert (broker.stats.connections, broker.stats.clients) == (0, 0)
    assert broker.stats.protocol_errors > 50
    client = await RawClient.open(running.port)
    assert int((await client.connect("after")).reason_code) == 0
    await client.silence()
    await client.finish()
