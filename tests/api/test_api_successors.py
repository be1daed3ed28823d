"""The next owner of a uid over the API: nothing of the former terminal is read, and its former owner hears nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from api_rig import Rig, open_rig

from platform_site import Site, peers

SECRET, OWN, END = "THEIRSECRET", "OURNUMBER", "THEEND"
ALL_TIME = {"start_time": "2000-01-01 00:00:00", "end_time": "2099-01-01 00:00:00"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "get_terminal_item": {"uid": "meter"},
    "get_terminal_status": {"terminal_id": "meter"},
    "get_trace": {"terminal_id": "meter"},
    "get_presence_list": {"terminal_id": "meter", **ALL_TIME},
    "get_command_list": {"terminal_id": "meter"},
    "get_last_grid": {"terminal_id": "meter"},
    "get_grid_list": {"terminal_id": "meter", **ALL_TIME},
    "get_reject_list": {"terminal_id": "meter"},
    "get_event_list": {},
    "get_retained_list": {},
    "get_client_list": {},
    "get_subscription_list": {},
    "get_login_failure_list": {},
    "get_audit_list": {},
    "get_former_terminal_list": {},
    "get_attention": {},
    "search": {"text": "meter"},
}
"""What a company asks about its terminal, and what lists all of its own."""


async def live_as_theirs(rig: Rig) -> None:
    """A terminal of the other company, with something secret in whatever is kept of one."""
    site = Site(rig.platform, rig.addresses)
    await rig.add_terminal("meter", "stranger", name=SECRET, tags=[SECRET], description=SECRET)
    async with peers(site) as make:
        meter = make("meter")
        assert await meter.connect("u-meter", "p-meter") == 0
        await rig.call("start_trace", "stranger", terminal_id="meter")
        await meter.subscribe("p2p/meter")
        await rig.call("publish_terminal_command", "stranger", terminal_id="meter", command="AXSet", value=SECRET)
        command = (await meter.received(1))[0]
        correlation = getattr(command.properties, "CorrelationData", None)
        await meter.publish("g/n", f'{{"Result": "{SECRET}"}}'.encode(), correlation=correlation)
        await meter.publish("g/r", f'{{"s": "{SECRET}"}}'.encode(), retain=True)
        await meter.publish("g/r", f"{SECRET} is no JSON".encode())
        await meter.publish(f"g/nobody/{SECRET}", b"{}")
        assert await make("meter").connect(SECRET, SECRET) != 0
        await rig.call("put_out_of_service", "stranger", uids=["meter"], minutes=60, reason=SECRET)


@asynccontextmanager
async def listening(rig: Rig, who: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A socket that hears of the terminal ``meter``, and of ``other``."""
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with rig.http.ws_connect("/apiproxy/api", headers=headers) as socket:
        for uid in ("meter", "other"):
            await socket.send_json(
                {"action": "subscribe", "kinds": ["grid", "terminal", "command", "trace"], "terminal_id": uid}
            )
            answer = await socket.receive_json(timeout=10)
            assert answer["code"] == 200, answer
        yield socket


async def frames_until(socket: aiohttp.ClientWebSocketResponse, mark: str) -> list[str]:
    """All frames up to the one that holds the mark."""
    found: list[str] = []
    async with asyncio.timeout(20):
        while not found or mark not in found[-1]:
            found.append(await socket.receive_str())
    return found


async def answers(rig: Rig, who: str) -> dict[str, str]:
    """What each question is answered."""
    return {action: json.dumps(await rig.ask(action, who, **fields)) for action, fields in QUESTIONS.items()}


async def test_nothing_of_the_former_terminal_is_read_and_nothing_of_the_next_is_heard(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        tokens = rig.tokens
        await live_as_theirs(rig)
        theirs = await answers(rig, "stranger")
        shown = {action for action, answer in theirs.items() if SECRET in answer}
        assert shown >= {
            "get_terminal_item",
            "get_trace",
            "get_command_list",
            "get_last_grid",
            "get_reject_list",
            "get_audit_list",
        }
        await rig.add_terminal("other", "stranger")
        async with listening(rig, "stranger") as socket:
            await rig.call("delete_terminal", "stranger", uid="meter")
            await rig.add_terminal("meter")
            site = Site(rig.platform, rig.addresses)
            async with peers(site) as make:
                meter, other = make("meter"), make("other")
                assert await meter.connect("u-meter", "p-meter") == 0
                await meter.subscribe("p2p/meter")
                await meter.publish("g/r", f'{{"s": "{OWN}"}}'.encode(), retain=True)
                await rig.call("publish_terminal_command", terminal_id="meter", command="AXSet", value=OWN)
                await meter.received(1)
                assert SECRET not in str([each.payload for each in meter.messages])
                assert await other.connect("u-other", "p-other") == 0
                await other.publish("g/r", f'{{"s": "{END}"}}'.encode())
                heard = await frames_until(socket, END)
                assert not [frame for frame in heard if OWN in frame]
                assert not [frame for frame in heard if '"online":true' in frame and '"meter"' in frame]
                for action, answer in (await answers(rig, "admin")).items():
                    assert SECRET not in answer, action
                for action, answer in (await answers(rig, "stranger")).items():
                    assert OWN not in answer, action
                for action in ("stop_trace", "start_trace", "get_terminal_status", "get_trace"):
                    assert (await rig.ask(action, "stranger", terminal_id="meter"))["code"] == 10404
                assert (await rig.ask("kick_client", "stranger", client_id="meter"))["code"] == 10404
                assert (await rig.ask("put_into_service", "stranger", uids=["meter"]))["code"] in (10401, 10404)
                assert site.presence.client("meter") is not None
    async with open_rig(tmp_path, tokens=tokens) as rig:
        for action, answer in (await answers(rig, "admin")).items():
            assert SECRET not in answer, action
        for action, answer in (await answers(rig, "stranger")).items():
            assert OWN not in answer, action
