"""Many sessions at once: each node knows them all, and each client finds what was published for it."""

from __future__ import annotations

import asyncio
from typing import Any

from test_stream_peers import publish
from test_stream_sessions import LASTS, dial, heard, node

from length import rounds
from raw_client import RawClient, until

__all__ = ["dial", "node"]

SESSIONS = rounds(300, 10_000)
_AT_ONCE = 100  # clients that are connected at a time
_ROOM_BYTES = 64 << 20
_LONG_S = 600.0


async def come(at: Any, number: int) -> RawClient:
    """Connects a client; its CONNACK is read."""
    client = await RawClient.open(at.port)
    client.connack = await client.connect(f"x-{number}", **LASTS)  # type: ignore[attr-defined]
    return client


async def each(work: Any) -> list[Any]:
    """What some work finds for each session, some at a time."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> Any:
        async with limit:
            return await work(number)

    return await asyncio.gather(*(one(number) for number in range(SESSIONS)))


async def test_many_sessions_wait_and_are_found_at_another_node(node: Any, dial: Any) -> None:
    room = {"most_bytes": _ROOM_BYTES, "owner_queued_messages": 2 * SESSIONS, "owner_queued_bytes": _ROOM_BYTES}
    a, b = await node("a", **room), await node("b", **room)

    async def subscribe(number: int) -> None:
        client = await come(a, number)
        assert not client.connack.session_present  # type: ignore[attr-defined]
        await client.subscribe(("d/all", 1), (f"d/{number}", 1))
        await client.finish()

    await each(subscribe)
    for at in (a, b):
        await until(lambda at=at: at.log.view.stats.sessions == SESSIONS, "all are known", timeout_s=_LONG_S)
    await until(lambda: not a.broker.sessions, "none is here", timeout_s=_LONG_S)
    telling = await dial(b, "x-telling")
    telling.publish("d/all", b"to all", qos=1, packet_id=1)
    assert (await telling.receive(_LONG_S)).packet_id == 1, "acknowledged when it waits for each of them"
    assert a.log.queue_stats.queued + b.log.queue_stats.queued == SESSIONS
    assert await publish(telling, "d/7", b"to one") == 0
    for at in (a, b):
        await until(lambda at=at: at.log.view.stats.messages == SESSIONS + 1, "all is known", timeout_s=_LONG_S)

    async def hear(number: int) -> list[bytes]:
        client = await come(b, number)
        assert client.connack.session_present  # type: ignore[attr-defined]
        found = await heard(client, 2 if number == 7 else 1)
        await client.silence()
        await client.finish()
        return found

    found = await each(hear)
    assert found == [[b"to all", b"to one"] if number == 7 else [b"to all"] for number in range(SESSIONS)]
    for at in (a, b):
        await until(lambda at=at: at.log.view.stats.messages == 0, "nothing waits any more", timeout_s=_LONG_S)
        assert at.log.view.stats.sessions == SESSIONS
        assert at.log.record_stats.lost == 0
