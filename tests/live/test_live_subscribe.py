"""Subscribing over real connections: what is answered, what follows, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from api.api_rig import open_rig
from lasting import KINDS, Connection, Gateway, open_ports
from terrazzo.access.users import SYSTEM
from waiting import until

IN_MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """One for the tests that leave nothing behind but frames and connections that have ended."""
    async with open_rig(tmp_path_factory.mktemp("shared")) as rig, open_ports(rig) as opened:
        yield opened


def tell(ports: Gateway, *numbers: int, company_id: int = 1, **whose: Any) -> None:
    for number in numbers:
        ports.rig.services.live.publish("event", company_id=company_id, data={"n": number}, **whose)


async def frames(connection: Connection, count: int) -> list[Any]:
    return [(await connection.receive())["data"]["n"] for _ in range(count)]


@IN_MODULE
@pytest.mark.parametrize("kind", KINDS)
async def test_frames_follow_the_answer_until_unsubscribed(shared: Gateway, kind: str) -> None:
    tell(shared, 0)
    async with shared.connect(kind) as connection:
        answer = await connection.ask("subscribe", actionid="s", kinds=["event"])
        assert (answer["resp"], answer["actionid"], answer["code"]) == ("subscribe", "s", 200)
        assert answer["result"]["subscription"] == 1
        tell(shared, 1, 2)
        first, second = await connection.receive(), await connection.receive()
        assert first == {
            "resp": "live",
            "subscription": 1,
            "kind": "event",
            "seq": answer["result"]["seq"] + 1,
            "data": {"n": 1},
        }
        assert second["seq"] == first["seq"] + 1
        assert (await connection.ask("unsubscribe", subscription=1))["result"] == {}
        tell(shared, 3)
        assert (await connection.ask("ping"))["resp"] == "ping"
        again = await connection.ask("unsubscribe", subscription=1)
        assert (again["code"], again["info"]) == (10401, "subscription: this connection has no subscription 1")


@IN_MODULE
@pytest.mark.parametrize("kind", KINDS)
async def test_coming_back_with_the_last_number_loses_nothing(shared: Gateway, kind: str) -> None:
    async with shared.connect(kind) as connection:
        await connection.ask("subscribe", kinds=["event"])
        tell(shared, 1)
        seq = (await connection.receive())["seq"]
    tell(shared, 2, 3)
    async with shared.connect(kind) as connection:
        answer = await connection.ask("subscribe", kinds=["event"], since=seq)
        assert answer["result"]["seq"] == seq
        assert await frames(connection, 2) == [2, 3]
        await connection.ask("subscribe", kinds=["event"], since=1_000_000)
        gap = await connection.receive()
        assert (gap["subscription"], gap["gap"]["since"], gap["gap"]["reason"]) == (2, 1_000_000, "restart")


@IN_MODULE
@pytest.mark.parametrize(
    ("fields", "code", "info"),
    [
        ({}, 10401, "kinds: is required"),
        ({"kinds": []}, 10401, "kinds: expected at least one of grid, mosaic, event"),
        ({"kinds": ["grid", "weather"]}, 10401, "kinds: 'weather' is not one of grid"),
        ({"kinds": 5}, 10401, "kinds: expected"),
        ({"kinds": ["grid"], "keys": ["a"]}, 10401, "keys: goes with the kind mosaic"),
        ({"kinds": ["grid"], "since": "x"}, 10401, "since: expected int"),
        ({"kinds": ["grid"], "since": -1}, 10401, "since: expected int"),
        ({"kinds": ["grid"], "terminal_id": "nobody"}, 10404, "terminal_id: no record 'nobody'"),
        ({"kinds": ["grid"], "object_id": 99}, 10404, "object_id: no record 99"),
    ],
)
async def test_what_cannot_be_subscribed_to_is_named(
    shared: Gateway, fields: dict[str, Any], code: int, info: str
) -> None:
    async with shared.connect("tcp") as connection:
        answer = await connection.ask("subscribe", **fields)
        assert (answer["code"], answer["info"][: len(info)]) == (code, info)


@IN_MODULE
async def test_plain_http_is_told_what_to_use(shared: Gateway) -> None:
    for action, fields in (("subscribe", {"kinds": "grid"}), ("unsubscribe", {"subscription": 1})):
        answer = await shared.rig.ask(action, "viewer", **fields)
        assert (answer["code"], answer["info"]) == (
            10401,
            f"action: {action} needs a connection that stays: use WebSocket or TCP",
        )


@IN_MODULE
async def test_who_is_not_logged_in_may_not(shared: Gateway) -> None:
    async with shared.connect("tcp", "nobody") as connection:
        assert (await connection.ask("subscribe", kinds="grid"))["code"] == 10402


async def test_so_many_subscriptions_and_no_more(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"ws_subscriptions": 3}) as rig, open_ports(rig) as ports:
        async with ports.connect("websocket") as connection:
            for _ in range(3):
                assert (await connection.ask("subscribe", kinds=["event"]))["code"] == 200
            refused = await connection.ask("subscribe", kinds=["event"])
            info = "subscriptions: this connection has 3 (limits.ws_subscriptions)"
            assert (refused["code"], refused["info"]) == (500, info)
            assert (await connection.ask("unsubscribe", subscription=2))["code"] == 200
            assert (await connection.ask("subscribe", kinds=["event"]))["result"]["subscription"] == 4
            tell(ports, 1)
            assert {(await connection.receive())["subscription"] for _ in range(3)} == {1, 3, 4}
        await until(lambda: rig.services.live.stats.subscriptions == 0, "a connection takes its subscriptions along")


async def test_another_company_is_told_nothing(ports: Gateway) -> None:
    rig = ports.rig
    await rig.add_terminal("t1")
    made = await rig.services.entities.objects.create(SYSTEM, {"name": "o", "terminal_list": ["t1"]})
    stranger_company = (await rig.services.entities.users.by_name("stranger-user"))["permission_company_id"]
    async with ports.connect("tcp", "stranger") as stranger, ports.connect("tcp", "root") as root:
        for named in ({"terminal_id": "t1"}, {"object_id": made["id"]}):
            assert (await stranger.ask("subscribe", kinds=["event"], **named))["code"] == 10404
            assert (await root.ask("subscribe", kinds=["event"], **named))["code"] == 200
        await stranger.ask("subscribe", kinds=["event", "terminal", "grid"])
        tell(ports, 1, object_id=made["id"], terminal_id="t1")
        await rig.add_terminal("t2")
        tell(ports, 2, company_id=stranger_company)
        assert await frames(stranger, 1) == [2]
        assert await frames(root, 2) == [1, 1]


async def test_records_of_terminals_are_told_as_they_change(ports: Gateway) -> None:
    rig = ports.rig
    async with ports.connect("tcp") as connection:
        await connection.ask("subscribe", kinds="terminal")
        await rig.add_terminal("t1")
        record = await rig.call("get_terminal_item", uid="t1")
        await rig.call("update_terminal", **{**record, "name": "renamed"})
        await rig.call("delete_terminal", uid="t1")
        changes = [(await connection.receive())["data"] for _ in range(3)]
    assert [(data["terminal_id"], data["change"]) for data in changes] == [
        ("t1", "created"),
        ("t1", "changed"),
        ("t1", "deleted"),
    ]


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_a_slow_client_loses_the_oldest_and_is_told_how_many(tmp_path: Path, kind: str) -> None:
    total, large = 5_000, "x" * 5_000
    async with AsyncExitStack() as stack:
        rig = await stack.enter_async_context(open_rig(tmp_path, limits={"live_frames": 50}))
        ports, hub = await stack.enter_async_context(open_ports(rig)), rig.services.live
        slow, quick = [await stack.enter_async_context(ports.connect(kind)) for _ in range(2)]
        for connection in (slow, quick):
            await connection.ask("subscribe", kinds=["event"])
        reading = asyncio.create_task(_read_to(quick, total), name="quick client")
        for number in range(1, total + 1):
            hub.publish("event", company_id=1, data={"n": number, "x": large})
            await asyncio.sleep(0)  # the server is in this loop, and sends between two publications
        assert _account(await reading) == total
        found = await _read_to(slow, total)
    assert _account(found) == total
    gaps = [frame["gap"] for frame in found if "gap" in frame]
    assert gaps, "the client did not read, and yet lost nothing"
    assert {gap["reason"] for gap in gaps} == {"slow"}
    assert found[0]["data"]["n"] == 1
    assert found[-1]["data"]["n"] == total, "the newest are the ones that stay"
    assert hub.stats.frames_dropped >= sum(gap["lost"] for gap in gaps)


async def _read_to(connection: Connection, last: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not found or found[-1].get("data", {}).get("n") != last:
        found.append(await connection.receive())
    return found


def _account(found: list[dict[str, Any]]) -> int:
    """The number of the last frame, after checking that each is there or counted as lost."""
    number = 0
    for frame in found:
        number += frame["gap"]["lost"] if "gap" in frame else 1
        assert "gap" in frame or frame["data"]["n"] == number
    return number


async def test_a_subscription_whose_data_cannot_be_encoded_ends_and_the_others_go_on(ports: Gateway) -> None:
    from terrazzo.live.frames import FrameEntry

    hub = ports.rig.services.live
    async with ports.connect("tcp") as connection, ports.connect("tcp") as other:
        await connection.ask("subscribe", kinds=["grid"])
        await other.ask("subscribe", kinds=["event"])
        hub.append(hub.index.find("grid", 1, None, "t"), [FrameEntry("grid", lambda: object(), size=1)])
        assert (await connection.receive())["end"] == {"code": 500, "info": "internal error"}
        tell(ports, 1)
        assert await frames(other, 1) == [1]


@pytest.mark.long_turns("it has 300 clients in its own loop")
async def test_hundreds_of_websockets_get_every_frame_in_order(ports: Gateway) -> None:
    rig, clients, count = ports.rig, 300, 200
    made = await rig.services.entities.objects.create(SYSTEM, {"name": "o"})

    async def follow(ready: asyncio.Queue[None]) -> list[int]:
        async with ports.connect("websocket") as connection:
            await connection.ask("subscribe", kinds=["event"], object_id=made["id"])
            ready.put_nowait(None)
            return [int(n) for n in await frames(connection, count)]

    ready: asyncio.Queue[None] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(ready), name=f"client {number}") for number in range(clients)]
        for _ in tasks:
            await ready.get()
        for number in range(count):
            tell(ports, number, object_id=made["id"])
            if number % 20 == 0:
                await asyncio.sleep(0.01)  # in bursts, so that batches differ
    assert all(task.result() == list(range(count)) for task in tasks)
    stats = rig.services.live.stats
    assert (stats.frames_sent, stats.frames_dropped, stats.gaps) == (clients * count, 0, 0)
    assert stats.frames_published == count, "one entry, however many read it"
