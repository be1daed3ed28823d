"""Commands from submission to answer: real broker, real database, paho terminals."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from own_platform import Ports, store_through
from platform_site import Company, Site, peers, running_site, until
from terrazzo.commands import dispatcher, submissions
from terrazzo.domain.answers import CommandAnswer, answer_record
from terrazzo.errors import BadParameter, Conflict, NotFound
from terrazzo.ports.store import Page, StoreUnavailable, TimeSeriesStore
from waiting import DEADLINE_S


async def journal(site: Site, company: Company, **filters):
    return (await site.commands.page(company.actor, **filters)).rows


async def reaches(site: Site, company: Company, uid: str, state: str):
    """Waits until a command has reached a state; its record."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            row = next(row for row in await journal(site, company) if row["uid"] == uid)
            if row["state"] == state:
                return row
            await asyncio.sleep(0.01)


async def listening(peer, uid: str, **options):
    one = peer(uid, protocol=options.pop("protocol", 5), clean=options.pop("clean", True))
    assert await one.connect(**options) == 0
    assert await one.subscribe(f"p2p/{uid}") == 1
    return one


@pytest.mark.parametrize("protocol", [4, 5])
async def test_to_a_terminal_that_is_there(site, company, peer, protocol):
    await company.terminal("t1")
    one = await listening(peer, "t1", protocol=protocol)
    row = await site.commands.submit(company.actor, "t1", "SETPOINT", "21.5")
    assert row["payload"] == {"Act": "Control", "SETPOINT": 21.5}
    assert (row["terminal_id"], row["command"], row["value"]) == ("t1", "SETPOINT", "21.5")
    message = (await one.received(1))[0]
    assert (message.topic, message.payload, message.qos) == ("p2p/t1", b'{"Act":"Control","SETPOINT":21.5}', 1)
    done = await reaches(site, company, row["uid"], "delivered")
    assert done["queued_us"] <= done["sent_us"] <= done["delivered_us"] == done["ended_us"]
    assert done["answered_us"] is None
    if protocol == 5:
        assert message.properties.CorrelationData == row["uid"].encode()
        assert message.properties.ResponseTopic == "g/t1/n"


async def test_an_answer_names_its_command(site, company, peer):
    await company.terminal("t1")
    await company.terminal("t2")
    one, two = await listening(peer, "t1"), await listening(peer, "t2")
    row = await site.commands.submit(company.actor, "t1", "Diag", "")
    message = (await one.received(1))[0]
    properties = message.properties
    named, asked = properties.CorrelationData, properties.ResponseTopic
    for forged in (b"x" * 32, b"short", b"\xff" * 32):
        assert await one.publish("g/n", b'{"Result":"forged"}', correlation=forged) == 0
    assert await two.publish("g/n", b'{"Result":"forged"}', correlation=named) == 0
    assert await one.publish(asked, b'{"Result":"ok","Code":0}', correlation=named) == 0
    done = await reaches(site, company, row["uid"], "answered")
    assert done["answer"] == {"Result": "ok", "Code": 0}
    assert done["delivered_us"] <= done["answered_us"] == done["ended_us"]
    assert await one.publish("g/n", b'{"Result":"again"}', correlation=named) == 0
    assert (await reaches(site, company, row["uid"], "answered"))["answer"] == {"Result": "ok", "Code": 0}


async def test_it_waits_for_a_terminal_that_is_away_and_goes_out_in_order(site, company, peer):
    await company.terminal("t1")
    uids = [(await site.commands.submit(company.actor, "t1", "STEP", str(step)))["uid"] for step in range(5)]
    rows = await journal(site, company)
    assert [row["state"] for row in rows] == ["queued"] * 5
    assert [row["uid"] for row in rows] == uids[::-1]
    one = peer("t1")
    assert await one.connect() == 0
    assert len(site.broker.sessions["t1"].inflight) == 0  # connected is not enough
    assert await one.subscribe("p2p/t1") == 1
    messages = await one.received(5)
    assert [json.loads(message.payload)["STEP"] for message in messages] == [0, 1, 2, 3, 4]
    for uid in uids:
        await reaches(site, company, uid, "delivered")


async def test_the_next_is_sent_after_the_one_before_it_was_acknowledged(site, company, peer):
    await company.terminal("t1")
    one = peer("t1")
    one.client.manual_ack_set(True)
    assert await one.connect() == 0
    assert await one.subscribe("p2p/t1") == 1
    first = await site.commands.submit(company.actor, "t1", "A", "1")
    second = await site.commands.submit(company.actor, "t1", "B", "2")
    message = (await one.received(1))[0]
    await reaches(site, company, first["uid"], "sent")
    assert (await reaches(site, company, second["uid"], "queued"))["sent_us"] is None
    assert len(one.messages) == 1
    one.client.ack(message.mid, message.qos)
    assert (await one.received(2))[1].payload == b'{"Act":"Control","B":2}'


async def test_a_command_that_is_lost_with_its_session_is_sent_again(site, company, peer):
    await company.terminal("t1")
    one = peer("t1")
    one.client.manual_ack_set(True)
    assert await one.connect() == 0
    assert await one.subscribe("p2p/t1") == 1
    row = await site.commands.submit(company.actor, "t1", "A", "1")
    await one.received(1)
    await reaches(site, company, row["uid"], "sent")  # the journal follows: until then the command is queued anyway
    await one.cut()
    waiting = await reaches(site, company, row["uid"], "queued")
    assert "session ended" in waiting["reason"]
    two = await listening(peer, "t1")
    await two.received(1)
    assert (await reaches(site, company, row["uid"], "delivered"))["reason"] == ""


async def test_a_kept_session_delivers_it_again_itself(site, company, peer):
    await company.terminal("t1")
    one = peer("t1", clean=False)
    one.client.manual_ack_set(True)
    assert await one.connect(expiry_s=600) == 0
    assert await one.subscribe("p2p/t1") == 1
    row = await site.commands.submit(company.actor, "t1", "A", "1")
    await one.received(1)
    await one.cut()
    assert (await reaches(site, company, row["uid"], "sent"))["delivered_us"] is None
    later = await site.commands.submit(company.actor, "t1", "B", "2")
    two = peer("t1", clean=False)
    assert await two.connect(expiry_s=600) == 0
    assert [message.payload[17:20] for message in await two.received(2)] == [b'"A"', b'"B"']
    await reaches(site, company, later["uid"], "delivered")


async def test_restart_keeps_what_has_not_ended(tmp_path):
    async with running_site(tmp_path) as site, peers(site) as peer:
        company = await site.company()
        await company.terminal("t1")
        one = peer("t1")
        one.client.manual_ack_set(True)
        assert await one.connect() == 0
        assert await one.subscribe("p2p/t1") == 1
        sent = await site.commands.submit(company.actor, "t1", "A", "1")
        queued = await site.commands.submit(company.actor, "t1", "B", "2")
        await reaches(site, company, sent["uid"], "sent")
    async with running_site(tmp_path) as site, peers(site) as peer:
        company.site = site
        one = await listening(peer, "t1")
        assert [message.payload[17:20] for message in await one.received(2)] == [b'"A"', b'"B"']
        for row in (sent, queued):
            await reaches(site, company, row["uid"], "delivered")


async def test_an_answer_that_was_stored_before_the_journal_could_write_it(tmp_path):
    """The process died between the two, after the acknowledgement of the command had been journaled."""
    async with running_site(tmp_path) as site, peers(site) as peer:
        company = await site.company()
        await company.terminal("t1")
        await listening(peer, "t1")
        before, row = [await site.commands.submit(company.actor, "t1", name, "1") for name in "AB"]
        await reaches(site, company, row["uid"], "delivered")
        said = CommandAnswer("t1", row["uid"].encode(), b'{"Result":"ok"}')
        await site.store.append([answer_record(said, row["queued_us"])])
    async with running_site(tmp_path) as site, peers(site) as peer:
        company.site = site
        assert (await reaches(site, company, row["uid"], "answered"))["answer"] == {"Result": "ok"}
        await reaches(site, company, before["uid"], "delivered")
        assert site.commands.stats.steps["answered"] == 1
    async with running_site(tmp_path) as site:
        assert site.commands.stats.steps["answered"] == 0, "it is known"


class Away:
    """A real store that can't be asked while ``is_away``."""

    def __init__(self, store: TimeSeriesStore) -> None:
        self._store = store
        self.is_away = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def page(self, *given: Any, **more: Any) -> Page:
        if self.is_away:
            raise StoreUnavailable("away")
        return await self._store.page(*given, **more)


async def test_nothing_goes_out_again_while_the_store_can_not_say_what_was_answered(tmp_path):
    async with running_site(tmp_path) as site, peers(site) as peer:
        company = await site.company()
        for uid in ("t1", "t2"):
            await company.terminal(uid)
        one = peer("t1")
        one.client.manual_ack_set(True)
        assert await one.connect() == 0
        assert await one.subscribe("p2p/t1") == 1
        first, second = [await site.commands.submit(company.actor, "t1", name, "1") for name in "AB"]
        await reaches(site, company, first["uid"], "sent")
        said = CommandAnswer("t1", first["uid"].encode(), b'{"Result":"ok"}')
        await site.store.append([answer_record(said, first["queued_us"])])
    async with running_site(tmp_path, ports=Ports(open_store=store_through(Away))) as site, peers(site) as peer:
        company.site = site
        one, _ = await listening(peer, "t1"), await listening(peer, "t2")
        other = await site.commands.submit(company.actor, "t2", "C", "1")
        await reaches(site, company, other["uid"], "delivered")  # a terminal about which there is no doubt
        await asyncio.sleep(2 * dispatcher.GRACE_S)  # a window in which nothing may come
        assert one.messages == []
        site.store.is_away = False
        await reaches(site, company, first["uid"], "answered")
        await reaches(site, company, second["uid"], "delivered")
        assert [message.payload[17:20] for message in one.messages] == [b'"B"']


async def test_expiry(tmp_path):
    async with running_site(tmp_path, command={"expiry_s": 0.3}) as site, peers(site) as peer:
        company = await site.company()
        await company.terminal("t1")
        row = await site.commands.submit(company.actor, "t1", "A", "1")
        ended = await reaches(site, company, row["uid"], "expired")
        assert ended["ended_us"] >= ended["expires_us"]
        one = await listening(peer, "t1")
        later = await site.commands.submit(company.actor, "t1", "B", "2")
        await reaches(site, company, later["uid"], "delivered")
        assert [message.payload for message in one.messages] == [b'{"Act":"Control","B":2}']


async def test_an_idempotency_key_gives_a_command_once(site, company, peer):
    other = await site.company("two")
    await company.terminal("t1")
    await other.terminal("t2")
    one = await listening(peer, "t1")
    key = {"idempotency_key": "order-17"}
    rows = await asyncio.gather(*(site.commands.submit(company.actor, "t1", "A", "1", **key) for _ in range(5)))
    assert len({row["uid"] for row in rows}) == 1
    assert (await site.commands.submit(other.actor, "t2", "A", "1", **key))["uid"] != rows[0]["uid"]
    with pytest.raises(Conflict, match="idempotency_key"):
        await site.commands.submit(company.actor, "t1", "A", "2", **key)
    await reaches(site, company, rows[0]["uid"], "delivered")
    assert len(one.messages) == 1


async def test_bad_requests(site, company):
    other = await site.company("two")
    made = await company.terminal("t1")
    await company.terminal("mute", access="pub")
    await other.terminal("theirs")
    for uid in ("unknown", "theirs", "", "0"):
        with pytest.raises(NotFound, match="terminal_id"):
            await site.commands.submit(company.actor, uid, "A", "1")
    with pytest.raises(BadParameter, match="terminal_id: the terminal may only publish"):
        await site.commands.submit(company.actor, "mute", "A", "1")
    for command, value, field in (
        ("Upgrade", "", "command"),
        ("", "1", "command"),
        ("A", None, "value"),
        ("AXUpgrade", "LUA", "value"),
    ):
        with pytest.raises(BadParameter, match=field):
            await site.commands.submit(company.actor, "t1", command, value)
    with pytest.raises(BadParameter, match="idempotency_key"):
        await site.commands.submit(company.actor, "t1", "A", "1", idempotency_key="")
    assert await journal(site, company) == []
    assert (await site.commands.submit(company.actor, str(made["id"]), "A", "1"))["terminal_id"] == "t1"


async def test_firmware_comes_from_the_terminals_configuration(site, company, peer):
    await company.terminal("t1")
    files = {"lua_file": "ftp://u:p@host/fw.lua", "mcu_file": "http://host/fw.bin"}
    await site.entities.configurations.update(company.actor, company.config, files)
    await site.commands.submit(company.actor, "t1", "AXUpgrade", "LUA")
    one = await listening(peer, "t1")
    assert json.loads((await one.received(1))[0].payload) == {
        "Act": "AXUpgrade", "Unit": "LUA", "URL": "ftp://host/fw.lua", "User": "u", "Pwd": "p",
    }  # fmt: skip


async def test_deleting_a_terminal_ends_its_commands(site, company):
    await company.terminal("t1")
    row = await site.commands.submit(company.actor, "t1", "A", "1")
    await site.entities.terminals.delete(company.actor, "t1")
    assert (await reaches(site, company, row["uid"], "failed"))["reason"] == "the terminal was deleted"


async def test_pages_are_a_companys_own(site, company):
    other = await site.company("two")
    for mine, uid in ((company, "t1"), (company, "t2"), (other, "t3")):
        await mine.terminal(uid)
        for step in range(3):
            await site.commands.submit(mine.actor, uid, "A", str(step))
    page = await site.commands.page(company.actor, page_index=2, page_size=4)
    assert page.total == 6
    assert [(row["terminal_id"], row["value"]) for row in page.rows] == [("t1", "1"), ("t1", "0")]
    assert (await site.commands.page(company.actor, terminal_id="t2")).total == 3
    assert (await site.commands.page(company.actor, terminal_id="t3")).total == 0
    assert (await site.commands.page(company.actor, states=["delivered"])).total == 0
    assert (await site.commands.page(company.actor, states=["queued", "sent"], page_index=9)).rows == []
    for wrong in ({"states": ["queued", "lost"]}, {"page_index": 0}, {"page_size": 0}, {"page_size": 1001}):
        with pytest.raises(BadParameter):
            await site.commands.page(company.actor, **wrong)


async def test_a_caller_who_gives_up_leaves_no_command_behind(site, company, peer):
    await company.terminal("t1")
    one = await listening(peer, "t1")
    for step in range(20):
        submission = asyncio.create_task(site.commands.submit(company.actor, "t1", "A", str(step)))
        await asyncio.sleep(step / 5000)  # given up a little later each time, wherever that is
        submission.cancel()
        await asyncio.wait({submission})
    await site.commands.submit(company.actor, "t1", "LAST", "1")
    await until(lambda: one.messages and b"LAST" in one.messages[-1].payload)
    await until(lambda: site.commands.stats.steps["delivered"] == len(one.messages))
    assert (await site.commands.page(company.actor)).total == len(one.messages)


async def test_too_many_open_commands(site, company, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_OPEN", 3)
    await company.terminal("t1")
    for step in range(3):
        await site.commands.submit(company.actor, "t1", "A", str(step))
    with pytest.raises(Conflict, match="3 commands are waiting"):
        await site.commands.submit(company.actor, "t1", "A", "3")


async def test_many_terminals_at_once(site, company, peer):
    uids = [f"t{number}" for number in range(10)]
    for uid in uids:
        await company.terminal(uid)
    ones = [await listening(peer, uid, protocol=4 + index % 2) for index, uid in enumerate(uids)]
    await asyncio.gather(
        *(site.commands.submit(company.actor, uid, "A", str(step)) for step in range(10) for uid in uids)
    )
    for one in ones:
        steps = [json.loads(message.payload)["A"] for message in await one.received(10)]
        assert steps == list(range(10))
    await until(lambda: site.commands.stats.steps["delivered"] == 100)
