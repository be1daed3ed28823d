"""What the far side of a bridge does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attacks.attack import Attack, Facts
from mqtt_bytes import frame, publish

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company

LARGE = 150 << 20


class UnlawfulBroker(Attack):
    """A broker that sends what no broker may: topics with wildcards and NUL, and packets of 150 MB."""

    number = 13
    name = "a bridge's far side: topics with #, + and NUL, packets of 150 MB"
    config = """
[[bridge]]
name = "far"
url = "mqtt://127.0.0.1:{far_side}"
protocol = "3.1.1"
company_id = 2
retry_s = 1
in = [{ filter = "x/#", qos = 1 }]
"""

    def prepare(self, company: Company) -> Facts:
        assert company.id == "2", "the first company that is created"
        company.terminal(self.uid, topic="pub:r;sub:x/#")
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            attacker.counts["bridge connected"] += 1
            await self._hurt(reader, writer)

        server = await asyncio.start_server(serve, "127.0.0.1", attacker.ports["far_side"])
        try:
            async with attacker.mqtt(self.uid) as peer:
                await peer.subscribe(["x/#"])
                await asyncio.sleep(30)
        finally:
            server.close()  # without waiting: the bridge may be connected for longer

    async def _hurt(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                await reader.read(4_096)
                writer.write(b"\x20\x02\x00\x00")
                subscribed = await reader.read(4_096)
                at = subscribed.find(0x82)
                writer.write(frame(0x90, subscribed[at + 2 : at + 4], b"\x01"))
                for topic in ("x/#", "x/+/y", "x/\0", "x/ok"):
                    writer.write(publish(topic, b'{"p": 1}'))
                    await writer.drain()
                head = publish("x/large", bytes(LARGE))
                for _ in range(2):
                    writer.write(head)
                    await writer.drain()
                while await reader.read(65_536):
                    pass
        except (OSError, TimeoutError):
            pass
        finally:
            writer.transport.abort()
