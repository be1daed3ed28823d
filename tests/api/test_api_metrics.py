"""Who may read the figures of the platform: ``metrics.token``, and ``mqtt.sys_topics`` for ``$SYS``."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from api_rig import open_rig
from prometheus_client import CollectorRegistry, generate_latest

from terrazzo.api.kernel.traffic import Traffic
from terrazzo.api.transports.metrics_page import metrics_handler
from turns_of_loop import longest_turn
from waiting import until

TOKEN = "a-token-of-some-length"


async def test_metrics_with_a_token(tmp_path: Path) -> None:
    async with open_rig(tmp_path, metrics={"token": TOKEN}) as rig:
        refused = [None, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer \u00e9"]
        for header in [*refused, f"Bearer {rig.tokens['root']}"]:
            headers = {} if header is None else {"Authorization": header}
            async with rig.http.get("/metrics", headers=headers) as response:
                answer = await response.json()
                assert (response.status, answer["code"], answer["resp"]) == (401, 10402, ""), header
                assert response.headers["WWW-Authenticate"].startswith("Bearer")
                assert "metrics.token" in answer["info"]
        async with rig.http.get("/metrics", headers={"Authorization": f"bearer {TOKEN}"}) as response:
            assert response.status == 200
            assert 'terrazzo_api_refused_total{status="401"} 8.0' in await response.text()
        async with rig.http.get("/healthz") as response:
            assert response.status == 200


async def test_many_figures_are_told_in_turns(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        traffic = Traffic()
        for number in range(1_000):
            traffic.count(f"operation {number}", 200, 0.001)
        handle = metrics_handler(rig.services, traffic)
        async with longest_turn() as turn:
            await asyncio.sleep(0.005)
            response = await handle(make_mocked_request("GET", "/metrics"))
        assert isinstance(response, web.Response)
        assert str(response.text).count('terrazzo_api_seconds_count{operation="operation ') == 1_000
    registry = CollectorRegistry()
    registry.register(traffic)
    began_s = time.thread_time()
    generate_latest(registry)
    assert turn.cpu_s < 0.8 * (time.thread_time() - began_s), "writing them down takes longer than asking for them"


class Hearer:
    """A terminal that subscribes to ``$SYS/#`` and to a shared subscription of it."""

    def __init__(self, uid: str, port: int) -> None:
        self.codes: list[int] = []
        self.topics: list[str] = []
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, uid, protocol=paho.MQTTv5)
        self.client.username_pw_set(f"u-{uid}", f"p-{uid}")
        self.client.on_connect = lambda client, *_: client.subscribe([("$SYS/#", 0), ("$share/s/$SYS/broker/#", 0)])
        self.client.on_subscribe = lambda _c, _d, _m, codes, _p: self.codes.extend(code.value for code in codes)
        self.client.on_message = lambda _c, _d, message: self.topics.append(message.topic)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize(
    ("setting", "mine", "theirs"), [("off", False, False), ("platform", True, False), ("granted", True, True)]
)
async def test_sys_is_for_those_whom_the_configuration_names(
    tmp_path: Path, setting: str, mine: bool, theirs: bool
) -> None:
    async with open_rig(tmp_path, mqtt={"sys_topics": setting}) as rig:
        for uid, who in (("t1", "admin"), ("t2", "stranger")):
            await rig.add_terminal(uid, who, topic="sub:$SYS/#")
        hearers = {uid: Hearer(uid, rig.addresses.mqtt_port) for uid in ("t1", "t2")}
        try:
            for uid, is_allowed in (("t1", mine), ("t2", theirs)):
                hearer = hearers[uid]
                await until(lambda hearer=hearer: len(hearer.codes) == 2)
                assert hearer.codes == ([0, 0] if is_allowed else [0x87, 0x87])
                if is_allowed:
                    await until(lambda hearer=hearer: "$SYS/broker/uptime" in hearer.topics)
            assert bool(hearers["t2"].topics) is theirs
        finally:
            for hearer in hearers.values():
                hearer.close()
