"""What a terminal does with subscriptions, topics and sessions."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from attacks.attack import Attack, Facts
from mqtt_bytes import field, frame
from terrazzo.client import ActionError

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company

CORRELATION_DATA = b"\x09"


class RepeatedFilter(Attack):
    """One SUBSCRIBE that finds all retained messages ten thousand times."""

    number = 3
    name = "one filter 10,000 times in a SUBSCRIBE, 500 retained"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        company.report(self.uid, ((f"g/{self.uid}/r/{n}", b'{"p": 1}') for n in range(500)), retained=True)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async with attacker.mqtt(self.uid) as peer:
            await peer.subscribe([f"g/{self.uid}/#"] * 10_000)
            attacker.counts["subscribed"] += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await peer.until(0)  # what is sent of them
            attacker.counts["deliveries"] += peer.received


class ShareGroups(Attack):
    """A thousand shared subscriptions to one's own topics, each of which has every message."""

    number = 7
    name = "1,000 $share groups over one's own topics"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async with attacker.mqtt(self.uid) as peer:
            await peer.subscribe(f"$share/{n}/g/{self.uid}/#" for n in range(1_000))
            for _ in range(10):
                await peer.publish_all((self.topic, b'{"p": 1}') for _ in range(20))
                attacker.counts["reports"] += 20
            attacker.counts["deliveries"] += peer.received


class DeepWildcards(Attack):
    """A thousand filters that match one deep topic in as many ways; each topic is a new one."""

    number = 8
    name = "1,000 filters of deep +"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        ways = itertools.product("a+", repeat=10)
        async with attacker.mqtt(self.uid) as peer:
            await peer.subscribe(f"g/{self.uid}/r/{'/'.join(way)}/+" for way in itertools.islice(ways, 1_000))
            deep = f"g/{self.uid}/r/" + "a/" * 10
            for _ in range(50):
                await peer.publish_all((deep + os.urandom(4).hex(), b'{"p": 1}') for _ in range(20))
                attacker.counts["reports"] += 20


class InflightThenAway(Attack):
    """Sessions with all that may be on its way to a client, of the largest messages, and no client."""

    number = 9
    name = "100 messages of 1 MiB inflight, then away"
    connections = 4
    per_second = 4.0
    payload = json.dumps({"p": "x" * 1_000_000}).encode()

    def prepare(self, company: Company) -> Facts:
        for number in range(self.connections):
            company.terminal(self.uid_of(number), session_expiry=3_600)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        uid = self.uid_of(number)
        head = field("MQTT") + b"\x04\xc0\x00\x00"  # a session that stays
        connect = frame(0x10, head, field(uid), field(f"u-{uid}"), field(f"pin-{uid}"))
        async with attacker.mqtt(uid, connect=connect) as peer:
            peer.answers = False
            await peer.subscribe([f"g/{uid}/#"])
            for _ in range(100):
                await peer.publish(f"g/{uid}/r", self.payload)
                attacker.counts["reports"] += 1
        await asyncio.sleep(15)  # each message is stored, too


class ManyTopics(Attack):
    """Topics that never come again, each of which is a series."""

    number = 10
    name = "120,000 sub-topics"
    connections = 4

    def prepare(self, company: Company) -> Facts:
        for number in range(self.connections):
            company.terminal(self.uid_of(number))
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        if attacker.counts["reports"] >= 120_000:
            await asyncio.sleep(1)
            return
        async with attacker.mqtt(self.uid_of(number)) as peer:
            topics = (f"g/{self.uid_of(number)}/r/{os.urandom(8).hex()}" for _ in range(2_000))
            await peer.publish_all((topic, b'{"p": 1}') for topic in topics)
            attacker.counts["reports"] += 2_000


class MadeUpAnswers(Attack):
    """Answers to commands that nobody gave."""

    number = 11
    name = "made-up Correlation Data"
    connections = 4
    per_second = 4_000.0

    def prepare(self, company: Company) -> Facts:
        for number in range(self.connections):
            company.terminal(self.uid_of(number))
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        uid = self.uid_of(number)
        async with attacker.mqtt(uid, protocol=5) as peer:
            said = (CORRELATION_DATA + field(os.urandom(16)) for _ in range(5_000))
            await peer.publish_all(((f"g/{uid}/n", b"{}") for _ in range(5_000)), properties=said)
            attacker.counts["answers"] += 5_000


class TerminalCalledLikeAChannel(Attack):
    """A terminal whose uid is the letter of a channel, so that others' short form seems to name it."""

    number = 12
    name = "a terminal called r"

    def prepare(self, company: Company) -> Facts:
        made = []
        for uid in ("r", "a", "R"):
            try:
                made.append(company.terminal(uid))
            except ActionError as refused:
                print(f"  terminal {uid}: {refused}", file=sys.stderr)
        return {"uids": made}

    async def attack(self, attacker: Attacker, number: int) -> None:
        for uid in attacker.facts["uids"]:
            async with attacker.mqtt(uid) as peer:
                await peer.publish_all((topic, b'{"p": 1}') for topic in (f"g/{uid}/r/a", f"g/{uid}/r") * 20)
                attacker.counts["reports"] += 40
