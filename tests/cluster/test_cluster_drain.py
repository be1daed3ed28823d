"""``terrazzo cluster drain`` under load: a front becomes empty, the leader hands over; nothing is lost, each once."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cluster.cluster_checker import check
from cluster.cluster_load import until
from cluster.cluster_run import Run
from cluster.cluster_stand import Member, Stand
from loaded_process import run_loaded_text
from mqtt_bytes import login
from postgresql_server import PostgreSQL

BAD_LOGIN = 0x86


async def ask_cluster(member: Member, *arguments: str) -> tuple[int, str]:
    """Exit status and output of a command, with the configuration of a node or front."""
    program = member.program
    command = ["-m", "terrazzo", "cluster", *arguments, "--data", str(program.data)]
    environment = {**os.environ, **program.environment}
    ended = await asyncio.to_thread(run_loaded_text, command, env=environment, timeout_s=500)
    return ended.returncode, ended.stdout + ended.stderr


async def drained(member: Member, name: str) -> dict[str, Any]:
    status, said = await ask_cluster(member, "drain", name, "--timeout", "400", "--json")
    assert status == 0, said
    found: dict[str, Any] = json.loads(said)
    return found


async def connect_5(port: int, uid: str) -> socket.socket:
    """A terminal of MQTT 5.0 that logs in; as often as terminals do, until the front knows of it."""
    for _ in range(20):
        opened = socket.create_connection(("127.0.0.1", port), 60)
        opened.sendall(login(uid, f"u-{uid}", f"pin-{uid}", protocol=5))
        head = await asyncio.to_thread(read, opened, 4)
        if head[3] == 0:
            await asyncio.to_thread(read, opened, head[1] - 2)
            return opened
        opened.close()
        assert head[3] == BAD_LOGIN, head
        await asyncio.sleep(1)
    raise AssertionError("the front doesn't know the terminal")


def read(opened: socket.socket, count: int) -> bytes:
    """So many bytes, fewer only where the connection ends."""
    found = b""
    while len(found) < count and (more := opened.recv(count - len(found))):
        found += more
    return found


@pytest.mark.timeout(1_800)
async def test_a_front_and_the_leader_are_drained_under_load(tmp_path: Path, own_postgresql: PostgreSQL) -> None:
    stand = Stand(tmp_path, own_postgresql, nodes="ab", fronts=("f1", "f2"))
    try:
        await stand.start()
        run = Run(stand, Random(1), terminals=6, per_second=20)
        await run.prepare()
        leader, first = await stand.leader(), stand.fronts["f1"]
        assert leader is not None
        await stand.call(leader, "create_terminal", **run.terminal_fields("five"))

        five = await connect_5(first.program.mqtt, "five")
        found = await drained(leader, "f1")
        assert (found["state"], found["clients"]) == ("empty", 0)
        packet = await asyncio.to_thread(read, five, 3)
        five.close()
        assert (packet[0], packet[2]) == (0xE0, 0x9C), "use another server"
        assert not await asyncio.to_thread(connects, first.program.mqtt)
        assert "it is empty" in (await stand.readiness(first) or "")
        other = stand.links["f2 terminals"][0].port
        await until(lambda: all(each.port == other for each in run.terminals), "all are at f2", timeout_s=300)
        await run.progress(10)
        status, said = await ask_cluster(leader, "status", "--json")
        assert {each["node"]: each["state"] for each in json.loads(said)["fronts"]}["f1"] == "drains", said
        status, said = await ask_cluster(leader, "drain", "f2")
        assert status == 2
        assert "no other front serves" in said

        standing_by = next(each for each in stand.nodes.values() if each is not leader)
        assert (await drained(leader, standing_by.name))["state"] == "stands by"
        leader.is_meant_down = True
        found = await drained(leader, leader.name)
        assert (found["state"], found["leader"]) == ("ended", standing_by.name)
        assert await asyncio.to_thread(leader.program.process.wait, 300) == 0
        status, said = await ask_cluster(leader, "drain", standing_by.name)
        assert status == 2
        assert "no node stands by that could lead" in said
        status, said = await ask_cluster(leader, "drain", leader.name)
        assert status == 2
        assert f"{leader.name!r} has ended" in said
        await run.progress(10)
        await leader.start()
        verdict = check(await run.finish())
        assert verdict.findings == []
        assert stand.crashes == []
        assert verdict.repeated == 0, "each session ended with all acknowledged that was read"
    finally:
        await stand.close()


def connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 10).close()
    except OSError:
        return False
    return True
