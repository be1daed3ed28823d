"""What a terminal and a company may leave in the broker: retained messages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from platform_site import peers, running_site
from waiting import until

WIDE = "pub:r,a,v,p,i,n;sub:#"


async def retain(peer: Any, topic: str, payload: bytes) -> int:
    """Publishes retained at QoS 1; the PUBACK's reason."""
    info = peer.client.publish(topic, payload, 1, retain=True)
    await asyncio.to_thread(info.wait_for_publish, 10)
    await until(lambda: ("pub", info.mid) in peer._acks, f"{topic} is acknowledged")
    return int(peer._acks[("pub", info.mid)].value)


async def test_reports_past_the_quota_are_stored_and_not_retained(tmp_path: Path) -> None:
    limits = {"terminal_retained_messages": 3, "company_retained_messages": 4}
    async with running_site(tmp_path, limits=limits) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        for company, uid in ((ours, "t1"), (ours, "t2"), (theirs, "t3")):
            await company.terminal(uid, topic=WIDE)
        flood, neighbour, other = make("t1"), make("t2"), make("t3")
        for peer in (flood, neighbour, other):
            await peer.connect()
        for number in range(10):
            assert await retain(flood, f"g/r/{number}", b'{"n": 1}') < 0x80
        assert site.broker.retained.count == 3
        for number in range(3):
            await retain(neighbour, f"g/r/{number}", b'{"n": 1}')
        assert site.broker.retained.count == 4  # the company's
        for number in range(3):
            await retain(other, f"g/r/{number}", b'{"n": 1}')
        assert site.broker.retained.count == 7
        assert site.broker.stats.dropped == {
            "too many retained messages of one client": 7,
            "too many retained messages of one owner": 2,
        }
        assert site.ingest.stats.messages == 16
    async with running_site(tmp_path, limits={"terminal_retained_messages": 1}) as site:
        assert site.broker.retained.count == 7  # what was there before stays


async def test_a_companys_queues_and_subscriptions_have_a_share(tmp_path: Path) -> None:
    limits = {"company_queued_messages": 3, "company_subscriptions": 3}
    async with running_site(tmp_path, limits=limits) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        for company, uid in ((ours, "t1"), (ours, "t2"), (theirs, "t3")):
            await company.terminal(uid, topic=WIDE)
        sender, sleeper, other = make("t1"), make("t2", clean=False), make("t3")
        await sender.connect()
        await sleeper.connect(expiry_s=600)
        await other.connect()
        assert [await sleeper.subscribe(pattern) for pattern in ("g/t1/r", "g/a", "g/v", "g/p")] == [1, 1, 1, 0x97]
        assert await other.subscribe("g/p") == 1
        assert await sleeper.subscribe("g/t1/r") == 1  # it has that one
        await sleeper.cut()
        await until(lambda: site.broker.client("t2") is None, "t2 is offline")
        codes = [await sender.publish("g/r", b'{"n": %d}' % number) for number in range(8)]
        assert max(codes) < 0x80  # a report is stored, whoever waits for it
        assert site.broker.sessions["t2"].queued == 3
        assert site.broker.stats.limited_owner_queues == 5
        assert len(await site.grid("g/t1/r")) == 8
