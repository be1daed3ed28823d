"""Nothing goes round: not over one bridge with the same topics both ways, not between two platforms."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bridge_rig import Peer, bridge_toml, metric, start_platform, stored, terminal, wait_connected

from running import Mosquitto, wait_for
from support import free_port
from terrazzo.config.sections import Config, load_config
from terrazzo.domain.actor import Actor, Role
from terrazzo.metadata.entities import Entities
from terrazzo.runtime import serve
from waiting import until

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)
BOTH = [{"filter": "g/#"}]


def test_the_same_topics_both_ways_over_one_bridge(tmp_path: Path, remote: Mosquitto) -> None:
    toml = bridge_toml(f"mqtt://127.0.0.1:{remote.port}", out=BOTH, in_=BOTH)
    with start_platform(tmp_path, toml) as platform, Peer(remote.port).subscribe("#") as there:
        wait_connected(platform)
        with terminal(platform) as here:
            for number in range(20):
                here.publish("g/t1/r", json.dumps({"n": number}))
                there.publish("g/t2/r", json.dumps({"n": number}))
            there.wait_for(40)
            wait_for(lambda: metric(platform, "received") == 20, "those of the other side")
            here.publish("g/t1/r", '{"last": 1}')
            there.wait_for(41)
        assert len(there.messages) == 41
        assert (len(stored(platform, "t1")), len(stored(platform, "t2"))) == (21, 20)
        assert metric(platform, "received") == 20
        assert metric(platform, "sent") == 21


def test_a_message_that_comes_back_by_another_way_is_dropped(tmp_path: Path, remote: Mosquitto) -> None:
    """Two bridges to one broker: what leaves over the one comes back over the other, with our mark."""
    url = f"mqtt://127.0.0.1:{remote.port}"
    toml = bridge_toml(url, name="there", out=BOTH) + bridge_toml(url, name="back", in_=BOTH)
    with start_platform(tmp_path, toml) as platform, Peer(remote.port) as there, terminal(platform) as here:
        wait_connected(platform, "there")
        wait_connected(platform, "back")
        here.publish_all("g/t1/r", [json.dumps({"n": number}) for number in range(30)])
        wait_for(lambda: metric(platform, "looped", "back") == 30, "all seen again")
        there.publish("g/t2/r", '{"other": 1}')
        wait_for(lambda: metric(platform, "received", "back") == 1, "what is not ours")
        assert len(stored(platform)) == 30
        wait_for(lambda: metric(platform, "sent", "there") == 31, "it leaves too: it has not been here before")


Ways = tuple[dict[str, Any], dict[str, Any]]  # keys of each platform's bridge to the other; empty: it has none


@pytest.mark.parametrize(
    ("ways", "copies"),
    [
        pytest.param(({"out": BOTH, "in_": BOTH}, {}), 1, id="one end both ways"),
        pytest.param(({"out": BOTH}, {"out": BOTH}), 1, id="both push"),
        pytest.param(({"in_": BOTH}, {"in_": BOTH}), 1, id="both pull"),
        pytest.param(({"out": BOTH, "in_": BOTH}, {"out": BOTH, "in_": BOTH}), 2, id="both ends both ways"),
    ],
)
async def test_between_two_platforms_nothing_goes_round(tmp_path: Path, ways: Ways, copies: int) -> None:
    """A bridge logs in at the other platform as a terminal that may route. What one end pushes and the other end pulls
    as well arrives twice; it stays at that, and nothing comes back to where it was first."""
    async with two_platforms(tmp_path, ways) as sites:
        await asyncio.to_thread(report, sites)
        for (own, other), platform in zip((("t1", "t2"), ("t2", "t1")), sites.values(), strict=True):
            await records_of(platform, other, at_least=25 * copies)
            await records_of(platform, own, at_least=25)
        for platform in sites.values():
            for bridge in platform.terminals.bridges:
                await until(lambda bridge=bridge: not bridge.status().queued, "nothing more on the way")
        await asyncio.to_thread(report, sites, 1, 25)  # whatever went round would be there before these
        for (own, other), platform in zip((("t1", "t2"), ("t2", "t1")), sites.values(), strict=True):
            found = await records_of(platform, other, at_least=26 * copies)
            assert sorted(each["n"] for each in found) == sorted(list(range(26)) * copies)
            assert await records_of(platform, own, at_least=26) == [{"n": number} for number in range(26)]


@asynccontextmanager
async def two_platforms(folder: Path, ways: Ways) -> AsyncIterator[dict[int, serve.Platform]]:
    """By MQTT port; each has the terminals t1 and t2, and a router for the other one's bridge."""
    ports = free_port(), free_port()
    sites = {
        port: serve.Platform(config(folder, port, other, keys))
        for port, other, keys in zip(ports, ports[::-1], ways, strict=True)
    }
    try:
        for platform in sites.values():
            await platform.start()
            await furnish(platform.metadata.entities)
        for platform in sites.values():
            for bridge in platform.terminals.bridges:
                await until(lambda bridge=bridge: bridge.status().connected_since_us, "connected")
        yield sites
    finally:
        for platform in sites.values():
            await platform.stop()


def config(folder: Path, port: int, other: int, keys: dict[str, Any]) -> Config:
    login = {"client_id": "router", "username": "u-router", "password": "pin-router"}
    file = folder / f"{port}.toml"
    file.write_text(bridge_toml(f"mqtt://127.0.0.1:{other}", **keys, **login) if keys else "")
    settings = {
        "MQTT__PORT": port,
        "HTTP__PORT": 0,
        "WEBSOCKET__PORT": 0,
        "MQTT__WEBSOCKET_PORT": "off",
        "LIMITS__LOGIN_FAILURES": 0,
    }
    environ = {f"TERRAZZO_{key}": str(value) for key, value in settings.items()}
    return load_config(file, environ | {"TERRAZZO_DATA__DIR": str(folder / str(port))})


async def furnish(entities: Entities) -> None:
    configuration = await entities.configurations.create(ROOT, {"name": "c"})
    for uid in ("router", "t1", "t2"):
        values = {"uid": uid, "name": uid, "type": "Other", "mode": "pwd", "config_id": configuration["uid"]}
        values |= {"username": f"u-{uid}", "pin": f"pin-{uid}", "topic": "pub:r,a,v,p,i,n;sub:g/#"}
        await entities.terminals.create(ROOT, values | {"is_route": int(uid == "router")})
    await entities.objects.create(ROOT, {"name": "o", "terminal_list": ["router", "t1", "t2"]})


def report(sites: dict[int, serve.Platform], count: int = 25, first: int = 0) -> None:
    """t1 reports here, t2 there."""
    for port, uid in zip(sites, ("t1", "t2"), strict=True):
        with Peer(port, uid, username=f"u-{uid}", password=f"pin-{uid}") as peer:
            for number in range(first, first + count):
                assert peer.publish(f"g/{uid}/r", json.dumps({"n": number})) == 0


async def records_of(platform: serve.Platform, uid: str, *, at_least: int = 0) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []

    async def enough() -> bool:
        page = await platform.store.page([f"g/{uid}/r"], 0, 2**62, offset=0, limit=1000)
        found[:] = [json.loads(record.body) for record in reversed(page.records)]
        return len(found) >= at_least

    deadline_s = time.monotonic() + 20
    while not await enough():
        assert time.monotonic() < deadline_s, f"{len(found)} records of {uid}"
        await asyncio.sleep(0.02)
    return found
