"""A small ceiling for all (``limits.memory_mib``): company A fills what it can, and B has what it needs."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from api.api_rig import Rig, open_rig
from open_stores import seal
from own_platform import Ports, store_through
from platform_site import Company, Site, peers, running_site
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from terrazzo.ingest.limits import IngestLimits
from terrazzo.live.selector import Selector
from terrazzo.memory_shares import MIB, MemoryShares
from terrazzo.ports.store import NO_NOTES, Record
from terrazzo.runtime.memory_ceiling import sensible_mib
from waiting import close, until

WIDE = "pub:r,a,v,p,i,n;sub:#"
KIB = 1_024


@asynccontextmanager
async def two_companies(folder: Path, **more: Any) -> AsyncIterator[tuple[Site, Company, Company]]:
    """A platform with 2 MiB for everything, and terminals a1, a2, b1, b2 of two companies."""
    limits = {"memory_mib": 2, **more.pop("limits", {})}
    async with running_site(folder, limits=limits, **more) as site:
        ours, theirs = await site.company("A"), await site.company("B")
        for company, uids in ((ours, ("a1", "a2")), (theirs, ("b1", "b2"))):
            for uid in uids:
                await company.terminal(uid, topic=WIDE)
        yield site, ours, theirs


def memory_of(site: Site) -> MemoryShares:
    return site.platform.gateway.services.memory


def bytes_of(site: Site, company: Company) -> int:
    return dict(memory_of(site).largest(10)).get(company.actor.company_id, 0)


async def test_messages_that_wait_for_one_company_leave_room_for_anothers(tmp_path: Path) -> None:
    """Of terminals that are there and acknowledge nothing; what waits for those that are away is on disk."""
    limits = {"inflight_to_client": 1}
    async with two_companies(tmp_path, limits=limits) as (site, ours, theirs), peers(site) as make:
        for uid, topic in (("a2", "g/a1/r"), ("b2", "g/b1/r")):
            silent = make(uid, clean=False)
            silent.client.manual_ack_set(True)
            await silent.connect(expiry_s=600)
            await silent.subscribe(topic)
        ours_sends, theirs_sends = make("a1"), make("b1")
        await ours_sends.connect()
        await theirs_sends.connect()
        report = json.dumps({"text": "x" * 64 * KIB}).encode()
        memory, of_broker, owner = memory_of(site), site.broker.memory, str(ours.actor.company_id)
        for _ in range(40):  # 2.5 MiB in all
            assert await ours_sends.publish("g/r", report) < 0x80, "a report is stored, whoever waits for it"
            await until(lambda: memory.by_kind()["queued"] >= of_broker.queued()[owner].bytes, "it was looked at")
        assert ours.actor.company_id in memory.over()
        kept = site.broker.sessions["a2"].queued
        assert 0 < kept < 40
        assert memory.total_bytes <= memory.most_bytes
        for _ in range(5):
            assert await theirs_sends.publish("g/r", report) < 0x80
        assert site.broker.sessions["b2"].queued == 4, "B's messages wait, but for the one that was sent"
        assert site.broker.sessions["a2"].queued == kept, "nothing that was taken is given up"
        assert len(await site.grid("g/a1/r")) == 40
        assert bytes_of(site, theirs) < memory.share_bytes


async def test_live_frames_of_the_largest_company_go_first(tmp_path: Path) -> None:
    async with two_companies(tmp_path) as (site, ours, theirs):
        memory, live = memory_of(site), site.platform.gateway.services.live
        feeds = {
            company.actor.company_id: live.open_feed(Selector(frozenset({"event"}), company.actor.company_id))
            for company in (ours, theirs)
        }
        for number in range(100):
            for company, size in ((ours, 30 * KIB), (theirs, KIB)):
                data = {"n": number, "text": "x" * size}
                live.publish("event", company_id=company.actor.company_id, data=data)
        await until(lambda: memory.stats.given_up["live"], "A gives up frames")
        assert memory.total_bytes <= memory.most_bytes
        mine, its = feeds[ours.actor.company_id], feeds[theirs.actor.company_id]
        assert mine.end - mine.first < 100
        assert (its.first, its.end) == (0, 100), "B's are all there"


async def company_of(rig: Rig, who: str) -> int:
    return rig.platform.metadata.tokens.verify(rig.tokens[who]).company_id


async def test_past_its_share_a_company_is_refused_by_the_limits_name_and_the_other_is_not(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"memory_mib": 2}) as rig:
        memory, body = rig.services.memory, b'{"action":"get_attention"}'
        ours, theirs = await company_of(rig, "admin"), await company_of(rig, "stranger")
        with memory.hold("pages", ours, 14 * MIB // 10), memory.hold("pages", theirs, 3 * MIB // 10):
            status, answer = await rig.post(body, token=rig.tokens["admin"])
            assert status == 429
            assert "limits.memory_mib" in answer["info"]
            assert (await rig.post(body, token=rig.tokens["stranger"]))[0] == 200
        assert (await rig.post(body, token=rig.tokens["admin"]))[0] == 200
        assert memory.stats.refused == {"requests": 1}


async def test_past_its_share_a_company_finds_and_deletes_what_it_has(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"memory_mib": 2}) as rig:
        number, memory, ours = await rig.add_terminal("t1"), rig.services.memory, await company_of(rig, "admin")
        theirs = await company_of(rig, "stranger")
        with memory.hold("pages", ours, 14 * MIB // 10), memory.hold("pages", theirs, 3 * MIB // 10):
            change = {"action": "update_terminal", "uid": "t1", "name": "x", "last_modified_by": 1}
            assert (await rig.post(json.dumps(change).encode(), token=rig.tokens["admin"]))[0] == 429
            (found,) = await rig.call("get_terminal_list")
            assert (found["id"], found["name"]) == (number, "Terminal t1")
            await rig.call("delete_terminal", uid="t1")
        assert memory.stats.refused == {"requests": 1}


DELETES = """
    api_key balance calculate campaign claim_key company control customer dashboard mapping object project retainer rule
    statistics terminal terminal_authority terminal_config terminals user
"""
ENDS = """
    abort_campaign cancel_replay clear_event clear_events close_retainer disable_second_factor end_wall_link kick_client
    logout pause_campaign put_out_of_service recall_commands remove_second_factor stop_balance stop_calculate
    stop_project stop_retainer stop_rule stop_statistics stop_trace unsubscribe
"""


def test_all_that_frees_is_spared_and_nothing_that_adds() -> None:
    spared = {each.name for each in TABLE if each.is_spared}
    found = {name for name in spared if name.startswith("get_")}
    assert spared - found == {f"delete_{what}" for what in DELETES.split()} | set(ENDS.split())
    assert {f"get_{what}_list" for what in DELETES.split() if what != "terminals"} <= found, (
        "what is to go has to be found"
    )
    assert not {name for name in found if "grid" in name or "mosaic" in name}
    for each in PATHS:
        word = each.path.rpartition("/")[2]
        frees = word.startswith(("delete", "discard")) or each.path.endswith(("/getItem", "/getList"))
        if "/stats/" not in each.path and "/offline/" not in each.path:
            assert each.is_spared == frees, each.path


async def test_who_does_not_read_is_ended_when_its_company_has_most(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"memory_mib": 2}) as rig:
        memory, live = rig.services.memory, rig.services.live
        port, peers = int(rig.addresses.tcp.rpartition(":")[2]), {}
        for who in ("admin", "stranger"):
            peers[who] = reader, writer = await slow_connection(port)
            fields = {"action": "subscribe", "kinds": ["event"], "Authorization": f"Bearer {rig.tokens[who]}"}
            writer.write(json.dumps(fields).encode() + b"\n")
            assert b'"code":200' in await reader.readline()
        live.publish("event", company_id=await company_of(rig, "stranger"), data="x" * (KIB * 8))
        live.publish("event", company_id=await company_of(rig, "admin"), data="x" * (8 * MIB))
        await until(lambda: memory.stats.given_up["answers"], "A's connection that does not read is ended")
        await until(lambda: rig.platform.gateway.connection_limiter.open == 1, "B's is open")
        assert b'"resp":"live"' in await peers["stranger"][0].readline()
        for _, writer in peers.values():
            await close(writer)


async def slow_connection(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of a peer that takes little."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    slow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(slow, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=slow, limit=16 * KIB)


class Gated:
    """A store that waits with each commit until it may."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.may = asyncio.Event()
        self.may.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def append(self, records: Any, notes: Any = NO_NOTES) -> None:
        await self.may.wait()
        await self.store.append(records, notes=notes)


@asynccontextmanager
async def opened(gate: asyncio.Event) -> AsyncIterator[None]:
    """Opens it at the end, so that a test that fails ends."""
    try:
        yield
    finally:
        gate.set()


async def test_reports_wait_in_their_connections_and_none_is_given_up(tmp_path: Path) -> None:
    limits = IngestLimits(messages=10_000, bytes=MIB, group_messages=1)
    ports = Ports(open_store=store_through(Gated), intake_limits=limits)
    async with two_companies(tmp_path, ports=ports) as (site, _, _), opened(site.store.may), peers(site) as make:
        ours, theirs = make("a1"), make("b1")
        await ours.connect()
        await theirs.connect()
        site.store.may.clear()
        report = json.dumps({"text": "x" * 20 * KIB}).encode()
        first = [ours.send("g/r", report) for _ in range(3)]
        await until(lambda: site.ingest.stats.backlog >= 1, "A's first are taken")
        first += [ours.send("g/r", report) for _ in range(120)]
        connections = {each.client.client_id: each for each in site.broker.core.connections if each.client}
        await until(lambda: connections["a1"].holds, "A is not read for the moment")
        second = [theirs.send("g/r", b'{"n": 1}') for _ in range(3)]
        await until(lambda: site.ingest.taken.by_owner().get(connections["b1"].client.owner), "B's are taken")
        assert not connections["b1"].holds
        assert not site.broker.intake_paused
        site.store.may.set()
        await until(lambda: all(done() for done in (*first, *second)), "all are stored and acknowledged")
        assert len(await site.grid("g/a1/r")) == 123
        assert not site.ingest.taken.by_owner()


@pytest.mark.parametrize(("there_is", "mib"), [(2**28, 256), (2**33, 2_048), (2**40, 4_096)])
def test_the_default_is_a_quarter_of_what_there_is(there_is: int, mib: int) -> None:
    assert sensible_mib(there_is) == mib


async def test_long_bodies_count_while_they_are_worked_on_and_are_refused_past_the_share(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"memory_mib": 2}) as rig:
        memory, ours = rig.services.memory, await company_of(rig, "admin")
        theirs = await company_of(rig, "stranger")
        body = json.dumps({"action": "ping", "more": "x" * 60 * KIB}).encode()
        with memory.hold("other", ours, 12 * MIB // 10), memory.hold("other", theirs, 3 * MIB // 10):
            status, answer = await rig.post(body, token=rig.tokens["admin"])
            assert (status, "limits.memory_mib" in answer["info"]) == (429, True), answer
            assert (await rig.post(body, token=rig.tokens["stranger"]))[0] == 200
        assert (await rig.post(body, token=rig.tokens["admin"]))[0] == 200
        assert memory.stats.refused == {"bodies": 1}
        assert not memory.by_kind()["bodies"]


async def test_pages_count_while_they_are_made_and_answers_until_they_are_taken(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"memory_mib": 2}) as rig:
        await rig.add_terminal("t1")
        memory, ours = rig.services.memory, await company_of(rig, "admin")
        records = [Record("g/t1/r", 10**15 + n, b'{"s": "%b"}' % (b"x" * 10 * KIB)) for n in range(100)]
        await rig.services.store.append(records)
        ask = {"action": "get_grid_list", "terminal_id": "t1", "page_size": 100}
        ask |= {"start_time": "2001-01-01 00:00:00", "end_time": "2020-01-01 00:00:00"}
        body = json.dumps(ask).encode()
        with memory.hold("other", ours, 3 * KIB):
            assert (await rig.post(body, token=rig.tokens["admin"]))[0] == 429, "three MiB, in two"
        assert memory.stats.refused == {"pages": 1}
        memory.most_bytes *= 4
        status, answer = await rig.post(body, token=rig.tokens["admin"])
        assert (status, len(answer["result"]["data"])) == (200, 100)
        await until(lambda: not memory.by_kind()["pages"] and not memory.by_kind()["made"], "it was taken")


async def test_rows_of_an_import_count_and_few_bytes_that_are_many_rows_do_too(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"memory_mib": 2}) as rig:
        headers = {"Authorization": f"Bearer {rig.tokens['admin']}"}
        for path, body in (
            ("/bulk/terminals?dry_run=1", b"[" + b"{}," * 3_000 + b"{}]"),
            ("/bulk/customers?dry_run=1", b"uid,name\n" + b"".join(b"c%d,x\n" % n for n in range(3_000))),
        ):
            async with rig.http.post(path, data=body, headers=headers) as response:
                assert (response.status, "limits.memory_mib" in await response.text()) == (429, True)
        body = b"uid,name\n" + b"".join(b"c%d,x\n" % n for n in range(100))
        async with rig.http.post("/bulk/customers", data=body, headers=headers) as response:
            assert (await response.json())["code"] == 200
        assert not rig.services.memory.by_kind()["imports"]


async def test_an_export_counts_by_the_piece_and_takes_its_companys_turn(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        memory, body = (
            rig.services.memory,
            [{"uid": f"c{n}", "name": "x" * 50} for n in range(300)],
        )
        await rig.call("import_customers", rows=body)
        headers, path = {"Authorization": f"Bearer {rig.tokens['admin']}"}, "/bulk/customers"
        async with AsyncExitStack() as turns:
            for _ in range(4):
                await turns.enter_async_context(rig.services.exports.turn(await company_of(rig, "admin")))
            asked = asyncio.create_task(fetch(rig, path, headers))
            await until(lambda: rig.services.exports._waiting, "it waits for its company's turn")
            assert (await fetch(rig, path, {"Authorization": f"Bearer {rig.tokens['stranger']}"})).startswith("uid,")
        assert (await asked).count("\n") == 301
        assert memory.by_kind()["exports"] == 0


async def fetch(rig: Rig, path: str, headers: dict[str, str]) -> str:
    async with rig.http.get(path, headers=headers) as response:
        assert response.status == 200
        return await response.text()


async def test_what_was_decoded_of_history_counts_and_goes_before_anybody_is_refused(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"memory_mib": 1}) as rig:
        memory, ours, store = rig.services.memory, await company_of(rig, "admin"), rig.services.store
        series = f"m/{await add_object(rig)}"
        bodies = [msgspec.msgpack.encode({"T": place * 37 % 1009, "U": place}) for place in range(4_000)]
        await store.append([Record(series, 10**15 + place * 60_000_000, body) for place, body in enumerate(bodies)])
        await seal(rig.platform.parts.store._store, block=1_000)
        asked = {"object_id": series[2:], "keys": ["T", "U"], "resample": "90s", "page_size": 9}
        await rig.call("get_mosaic_list", start_time="2001-09-08 00:00:00", end_time="2001-09-12 00:00:00", **asked)
        kept = store.kept()[ours][0]
        assert kept > 20_000
        others = sum(size for owner, (size, _) in store.kept().items() if owner != ours)
        await until(lambda: memory.by_kind()["segments"] == kept + others, "it was looked at")
        with memory.holding("imports", ours) as held:
            held.resize(memory.most_bytes - 100_000)
            await until(lambda: ours not in store.kept(), "it goes, as others may need the memory")
            assert memory.stats.given_up["segments"] == kept
        await until(lambda: memory.by_kind()["segments"] == others, "it counts no more")


async def add_object(rig: Rig) -> int:
    signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    script = [["T", "T", "T", "STA", "$AdapterID-1.T", "x", ""]]
    uid = (await rig.call("create_mapping", name="m", script=script, **signed))["uid"]
    return int((await rig.call("create_object", name="Pump", mapping_id=uid, terminal_list=[]))["id"])


async def test_all_kinds_are_looked_at_and_told(tmp_path: Path) -> None:
    async with two_companies(tmp_path) as (site, ours, _):
        kinds = set(memory_of(site).by_kind())
        assert kinds >= {
            "inflight",
            "partial",
            "effects",
            "states",
            "late",
            "bridges",
            "requests",
            "made",
            "queued",
            "received",
            "segments",
        }
        waiting = site.platform.parts.objects.mapper.effect_queue._waiting_of
        waiting[str(ours.actor.company_id)] += 100
        await until(lambda: memory_of(site).by_kind()["effects"] > 10_000, "they are counted")
        assert bytes_of(site, ours) > 10_000


async def test_lines_that_have_not_all_arrived_count(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        memory, ours = rig.services.memory, await company_of(rig, "admin")
        _, writer = await asyncio.open_connection("127.0.0.1", int(rig.addresses.tcp.rpartition(":")[2]))
        proof = {"action": "ping", "Authorization": f"Bearer {rig.tokens['admin']}"}
        writer.write(json.dumps(proof).encode() + b"\n" + b'{"action": "' + b"x" * 100 * KIB)
        await until(lambda: memory.by_kind()["requests"] > 100 * KIB, "it is counted")
        assert dict(memory.largest(10))[ours] > 100 * KIB
        await close(writer)
        await until(lambda: not memory.by_kind()["requests"], "it is gone")
