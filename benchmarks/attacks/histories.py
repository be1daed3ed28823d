"""What a user asks of time series: pages, exports and live feeds, many of which nobody reads."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from attacks.attack import GATEWAY, Attack, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attacks.attacker import Attacker
    from attacks.company import Company

EVER = {"start_time": "2020-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
UNREAD_S = 10.0  # for which answers are left where they are


def records(topic: str, count: int, size: int) -> Iterator[tuple[str, bytes]]:
    """So many reports of such a size, which nothing makes shorter."""
    for number in range(count):
        yield topic, json.dumps({"n": number, "p": os.urandom(size // 2).hex()}).encode()


def request(action: str, **fields: Any) -> bytes:
    """An action as a body."""
    return json.dumps({"action": action, **EVER, **fields}).encode()


class ManyFilters(Attack):
    """A page of the records that any of a thousand filters matches, of a terminal with 5,000 series."""

    number = 15
    name = "1,000 topic filters over 5,000 series"
    connections = 2

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        company.report(self.uid, ((f"g/{self.uid}/r/{n}/a/b/c", b'{"p": 1}') for n in range(self.many(5_000))))
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        filters = [f"g/{self.uid}/r/+/a/+/{'+/' * (n % 7)}x{n}" for n in range(1_000)]
        await attacker.call("get_grid_list", terminal_id=self.uid, topic=filters, page_size=1, **EVER)


class LongKeys(Attack):
    """Pages that repeat a long name in each of their records, and that nobody reads."""

    number = 21
    name = "keys of 300 KB in each of 1,000 records, not read"
    connections = 3

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        made = company.object(self.uid, rows=[["V", "", "", "STA", "Cycled", f"{self.uid}.n", "", ""]])
        company.report(self.uid, records(self.topic, 1_000, 2))
        return {"object": made}

    async def attack(self, attacker: Attacker, number: int) -> None:
        body = request(
            "get_mosaic_list", object_id=attacker.facts["object"], keys=["V", "k" * 300_000], page_size=1_000
        )
        async with attacker.unread(GATEWAY, body):
            attacker.counts["asked"] += 1
            await asyncio.sleep(UNREAD_S)


class LongPages(Attack):
    """Pages of as many records as may be, whatever their size."""

    number = 22
    name = "pages of 300 records of 500 KB, not read"
    connections = 4

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        company.report(self.uid, records(self.topic, self.many(300), 500_000))
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        body = request("get_grid_list", terminal_id=self.uid, page_size=1_000)
        async with attacker.unread(GATEWAY, body):
            attacker.counts["asked"] += 1
            await asyncio.sleep(UNREAD_S)


class ManyFeeds(Attack):
    """Subscriptions each with a list of keys of its own, which stay when their sockets have gone."""

    number = 23
    name = "2,000 live feeds with long lists of keys"
    connections = 20

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        rows = [[f"V{n}", "", "", "STA", "Cycled", f"{self.uid}.p{n}", "", ""] for n in range(100)]
        return {"object": company.object(self.uid, rows=rows)}

    async def attack(self, attacker: Attacker, number: int) -> None:
        socket = await attacker.socket()
        try:
            for _ in range(100):
                keys = [os.urandom(16).hex() for _ in range(300)]
                asked = {"action": "subscribe", "kinds": ["mosaic"], "object_id": attacker.facts["object"]}
                await socket.send_json({**asked, "keys": [*keys, "V1"]})
                answer = await socket.receive_json()
                attacker.counts[f"{answer.get('code')} {answer.get('info', '')[:60]}"] += 1
            if number == 0:
                async with attacker.mqtt(self.uid) as peer:
                    for value in range(100):
                        points = {f"p{n}": value for n in range(100)}
                        await peer.publish(self.topic, json.dumps(points).encode())
                        attacker.counts["reports"] += 1
            else:
                await asyncio.sleep(4)
        finally:
            await socket.close()


class IdleFeed(Attack):
    """A feed of long frames that nobody takes, kept for whoever comes back."""

    number = 25
    name = "an idle live feed of 1 MB frames"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        socket = await attacker.socket()
        await socket.send_json({"action": "subscribe", "kinds": ["grid"], "terminal_id": self.uid})
        await socket.receive_json()
        async with attacker.mqtt(self.uid) as peer:
            for report in records(self.topic, 100, 900_000):
                await peer.publish(*report)
                attacker.counts["reports"] += 1
                await asyncio.sleep(0.02)
        await socket.close()


class UnreadExports(Attack):
    """Exports that are begun, and of which nothing is taken."""

    number = 27
    name = "100 exports opened and not read"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        company.report(self.uid, records(self.topic, self.many(300), 200_000))
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async with AsyncExitStack() as opened:
            for _ in range(100):
                await opened.enter_async_context(attacker.unread(f"/export/grid/{self.uid}?format=jsonl"))
                attacker.counts["asked"] += 1
            await asyncio.sleep(UNREAD_S)
