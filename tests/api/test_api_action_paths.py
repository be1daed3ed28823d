"""``POST /apiproxy/api/<action>`` is the gateway's action of this name; ``strict`` refuses what nothing reads."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import msgspec
import pytest
from api_rig import PASSWORD, Rig

from terrazzo.api.kernel.strictness import refuse_unknown
from terrazzo.api.openapi.document import action_path
from terrazzo.api.operations.table import TABLE
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import at_once

ENDS_SESSIONS = {"logout"}
JSON = {"Content-Type": "application/json"}


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


async def post(rig: Rig, action: str, body: bytes | None, who: str = "", **headers: str) -> tuple[int, Any]:
    sent = dict(JSON if body is not None else {}) | headers
    if who:
        sent["Authorization"] = f"Bearer {rig.tokens[who]}"
    async with rig.http.post(f"/apiproxy/api/{action}", data=body, headers=sent) as response:
        return response.status, await response.json()


async def test_each_action_is_refused_and_answered_as_at_the_gateway(rig: Rig) -> None:
    """To nobody, to a viewer and to an administrator, without fields: what each may and what is missing is the same."""
    for operation in TABLE:
        if operation.name in ENDS_SESSIONS:
            continue
        for who in ("", "viewer", "admin"):
            status, answer = await post(rig, operation.name, b'{"actionid": 7}', who)
            token = rig.tokens.get(who)
            body = json.dumps({"action": operation.name, "actionid": 7}).encode()
            asked = await rig.post(body, token=token)
            assert (status, answer["code"], answer["resp"]) == (asked[0], asked[1]["code"], operation.name)
            assert answer["actionid"] == 7
            assert answer["code"] == 200 or answer["info"] == asked[1]["info"]


async def test_fields_and_results_are_the_same(rig: Rig) -> None:
    await rig.add_terminal("t1")
    fields = json.dumps({"uid": "t1"}).encode()
    _, answer = await post(rig, "get_terminal_item", fields, "viewer")
    assert answer == await rig.ask("get_terminal_item", "viewer", uid="t1") | {"actionid": ""}
    login = json.dumps({"username": "admin", "password": PASSWORD}).encode()
    assert (await post(rig, "login", login))[1]["code"] == 200


@IN_MODULE
@pytest.mark.parametrize("body", [None, b"", b"{}", b'{"action": "ping"}'])
async def test_a_body_may_be_missing_and_may_repeat_the_action(shared_rig: Rig, body: bytes | None) -> None:
    assert (await post(shared_rig, "ping", body, "viewer"))[1]["result"]["pong"]


@IN_MODULE
@pytest.mark.parametrize(
    ("body", "info"),
    [
        (b'{"action": "login"}', "action: the address says ping, the body 'login'"),
        (b'{"action": 7}', "action: expected str, got int"),
        (b"[]", "body: "),
        (b"{", "body: not JSON"),
        (b" ", "body: is empty"),
        (b"\xff", "body: not UTF-8"),
    ],
)
async def test_what_can_not_be_read_is_said(shared_rig: Rig, body: bytes, info: str) -> None:
    status, answer = await post(shared_rig, "ping", body, "viewer")
    assert (status, answer["resp"], answer["code"]) == (200, "ping", 10401)
    assert answer["info"].startswith(info)


@IN_MODULE
async def test_other_actions_methods_and_media_types_are_refused(shared_rig: Rig) -> None:
    assert (await post(shared_rig, "get_termnal_list", b"{}", "viewer"))[0] == 404
    assert (await post(shared_rig, "ping", b"{}", "viewer", **{"Content-Type": "text/csv"}))[0] == 415
    async with shared_rig.http.get("/apiproxy/api/ping") as response:
        assert response.status == 405


async def test_requests_are_counted_by_action(rig: Rig) -> None:
    await post(rig, "ping", b"{}", "viewer")
    async with rig.http.get("/metrics") as response:
        assert 'terrazzo_api_requests_total{code="200",operation="ping"} 1.0' in await response.text()


@IN_MODULE
async def test_a_known_head_is_answered_for_its_own_action(shared_rig: Rig) -> None:
    """On one connection that stays, where a head that came before is not read again."""
    async with aiohttp.ClientSession(shared_rig.addresses.http) as session:
        headers = JSON | {"Authorization": f"Bearer {shared_rig.tokens['viewer']}"}
        for _ in range(3):
            for action in ("ping", "get_terminal_list", "get_object_list"):
                async with session.post(action_path(action), data=b"{}", headers=headers) as response:
                    answer = await response.json()
                    assert (answer["resp"], answer["code"]) == (action, 200)


# strict


async def refusal(rig: Rig, action: str, **fields: Any) -> str:
    answer = await rig.ask(action, **fields)
    assert answer["code"] == 10401, answer
    return str(answer["info"])


@IN_MODULE
async def test_unknown_fields_are_ignored_unless_the_request_is_strict(shared_rig: Rig) -> None:
    assert (await shared_rig.ask("get_terminal_list", page_sise=3))["code"] == 200
    assert (await shared_rig.ask("get_terminal_list", page_sise=3, strict=False))["code"] == 200
    assert (await shared_rig.ask("get_terminal_list", page_size=3, actionid=1, Authorization="", strict=True))[
        "code"
    ] != 10401
    told = await refusal(shared_rig, "get_terminal_list", page_sise=3, strict=True)
    assert told == "page_sise: unknown field; did you mean page_size?"
    status, answer = await post(shared_rig, "get_terminal_list", b'{"page_sise": 3, "strict": true}', "viewer")
    assert (status, answer["info"]) == (200, told)


@IN_MODULE
async def test_all_unknown_fields_are_named_and_not_too_many(shared_rig: Rig) -> None:
    told = await refusal(shared_rig, "get_terminal_list", strict=True, page_sise=1, xyzzy=2)
    assert told == "page_sise: unknown field; did you mean page_size?; xyzzy: unknown field"
    many = {f"field_{number}" + "x" * 1000: 1 for number in range(100)}
    assert len(await refusal(shared_rig, "get_terminal_list", strict=True, **many)) < 4_000


@IN_MODULE
async def test_what_the_documents_misspell_is_known(shared_rig: Rig) -> None:
    assert "is_availabel" not in await refusal(shared_rig, "create_terminal", strict=True, is_availabel=1)


@IN_MODULE
async def test_strict_is_true_or_false(shared_rig: Rig) -> None:
    assert await refusal(shared_rig, "ping", strict="yes") == "strict: expected bool, got str"


@IN_MODULE
async def test_only_who_may_ask_is_told_of_fields(shared_rig: Rig) -> None:
    answer = await shared_rig.ask("create_company", "viewer", strict=True, xyzzy=1)
    assert (answer["code"], "xyzzy" in answer["info"]) == (10403, False)


class Part(msgspec.Struct):
    name: str = ""


class Whole(msgspec.Struct):
    parts: list[Part] = []
    part: Part | None = None
    anything: dict[str, Any] = {}
    either: Part | str = ""


@pytest.mark.parametrize(
    ("body", "info"),
    [
        ('{"parts": [{"name": "a"}, {"nane": "b"}]}', "parts[1].nane: unknown field; did you mean name?"),
        ('{"part": {"x": 1}}', "part.x: unknown field"),
        ('{"either": {"nam": 1}}', "either.nam: unknown field; did you mean name?"),
        ('{"part": null, "anything": {"x": {"y": 1}}, "parts": 7, "either": "x", "action": "a"}', ""),
    ],
)
def test_records_within_a_request_are_looked_into(body: str, info: str) -> None:
    values = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    if not info:
        return at_once(refuse_unknown(Whole, values))
    with pytest.raises(BadParameter) as refused:
        at_once(refuse_unknown(Whole, values))
    assert str(refused.value) == info
    return None
