"""What a bridge brought and the store could not take is not acknowledged, and comes again over a new connection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from bridge_rig import Peer, bridge_toml
from local_broker import LocalBroker

from open_stores import supervisor
from own_platform import own_platform
from running import Mosquitto
from terrazzo.config.sections import load_config
from terrazzo.ports.bridge import BridgeMessage
from terrazzo_adapters.bridge import BridgeSettings, MqttBridge, TopicRule
from waiting import until


class WithholdingBroker(LocalBroker):
    """Takes nothing of what comes first; ``again`` is called as the ingest calls it, once for each message."""

    def __init__(self, withheld: int) -> None:
        super().__init__()
        self.withheld = withheld
        self.came = 0

    def publish(self, name: str, message: BridgeMessage, on_taken: Callable[[], None], *, company_id: int) -> None:
        self.came += 1
        if self.came <= self.withheld:
            if self.came == self.withheld:
                for _ in range(self.withheld):
                    self.again()
            return
        super().publish(name, message, on_taken, company_id=company_id)


@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
async def test_what_was_withheld_is_sent_again(
    tmp_path: Path, remote: Mosquitto, protocol: Literal["3.1.1", "5.0"]
) -> None:
    tasks, broker = supervisor(), WithholdingBroker(3)
    settings = BridgeSettings(
        name="hq",
        host="127.0.0.1",
        port=remote.port,
        client_id="bridge-hq",
        protocol=protocol,
        retry_s=1.0,
        incoming=(TopicRule(filter="g/#"),),
    )
    bridge = MqttBridge(settings, broker, tasks=tasks, folder=tmp_path / "bridge")
    await bridge.start()
    try:
        await until(lambda: bridge.status().connected_since_us, "connected")
        with Peer(remote.port) as there:
            there.publish_all("g/t1/r", ["0", "1", "2"])
            await until(lambda: bridge.status().received == 3, "all are taken in the end")
        assert broker.taken == [b"0", b"1", b"2"]
        assert broker.came == 6
        await until(lambda: bridge.status().connects == 2, "subscribed again")
        assert bridge.status().withheld == 1  # the messages were of one connection
        assert bridge.kept() == (0, 0)
        assert tasks.degraded() == {}  # no fault of the bridge
    finally:
        await bridge.hang_up()
        await bridge.close()


async def test_a_platforms_bridge_is_cut_as_the_ingest_cuts_a_client(tmp_path: Path, remote: Mosquitto) -> None:
    """``IngestPipeline`` ends the connection of the client whose message it withholds, by its client id."""
    file = tmp_path / "terrazzo.toml"
    file.write_text(bridge_toml(f"mqtt://127.0.0.1:{remote.port}", in_=[{"filter": "g/#"}]))
    bridges = load_config(file, {}).bridge
    async with own_platform(tmp_path / "data", bridges=bridges) as (platform, _addresses):
        (bridge,) = platform.terminals.bridges
        await until(lambda: bridge.status().connected_since_us, "connected")
        assert platform.messaging.bus.kick("bridge:" + bridge.name)
        await until(lambda: bridge.status().connects == 2, "made anew")
        assert bridge.status().withheld == 1
        assert not platform.messaging.bus.kick("bridge:other")
