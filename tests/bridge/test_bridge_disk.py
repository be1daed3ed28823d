"""A spool whose disk fails: nobody is told that a message is safe, nothing is lost, and it goes on by itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from bridge_rig import Peer, bridge_toml

from running import Mosquitto
from support import free_port
from terrazzo.config.sections import load_config
from terrazzo.domain.actor import Actor, Role
from terrazzo.ports.store import StoreUnavailable
from terrazzo.runtime import serve
from terrazzo_adapters.bridge.spool import MessageSpool
from waiting import until

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)


async def test_acknowledged_only_when_stored_and_spooled(tmp_path: Path, monkeypatch: Any) -> None:
    fails = True
    commit = MessageSpool.commit

    def failing_commit(self: MessageSpool, *arguments: Any, **options: Any) -> None:
        if fails:
            raise StoreUnavailable("the disk fails")
        commit(self, *arguments, **options)

    monkeypatch.setattr(MessageSpool, "commit", failing_commit)
    with Mosquitto(tmp_path / "remote") as remote, Peer(remote.port).subscribe("#") as there:
        platform, port = await start(tmp_path, remote.port)
        try:
            status = platform.terminals.bridges[0].status()
            await until(lambda: status.connected_since_us, "connected")
            here = await asyncio.to_thread(Peer, port, "t1", username="u-t1", password="pin-t1")
            infos = [here.client.publish("g/t1/r", json.dumps({"n": number}), qos=1) for number in range(50)]
            await until(lambda: platform.messaging.ingest.stats.messages == 50, "stored")
            await until(lambda: status.spool_failures >= 2, "two attempts")
            assert not any(info.is_published() for info in infos)
            assert there.messages == []
            fails = False
            await until(lambda: all(info.is_published() for info in infos), "acknowledged")
            await asyncio.to_thread(there.wait_for, 50)
            assert there.payloads() == [json.dumps({"n": number}) for number in range(50)]
            here.close()
        finally:
            fails = False
            await platform.stop()


async def start(folder: Path, remote: int) -> tuple[serve.Platform, int]:
    file, port = folder / "terrazzo.toml", free_port()
    file.write_text(bridge_toml(f"mqtt://127.0.0.1:{remote}", out=[{"filter": "g/#"}]))
    settings = {
        "MQTT__PORT": port,
        "HTTP__PORT": 0,
        "WEBSOCKET__PORT": 0,
        "MQTT__WEBSOCKET_PORT": "off",
        "DATA__DIR": folder / "data",
    }
    platform = serve.Platform(load_config(file, {f"TERRAZZO_{key}": str(value) for key, value in settings.items()}))
    await platform.start()
    entities = platform.metadata.entities
    configuration = await entities.configurations.create(ROOT, {"name": "c"})
    values = {"uid": "t1", "name": "t1", "type": "Other", "mode": "pwd", "config_id": configuration["uid"]}
    await entities.terminals.create(ROOT, values | {"username": "u-t1", "pin": "pin-t1", "topic": "all"})
    return platform, port
