"""Administrators see who of their company failed to log in too often, and until when, and let them in again."""

from __future__ import annotations

import json
from typing import Any

from api_rig import PASSWORD, Rig
from mqtt5 import ConnAckReasonCode

from terrazzo_broker.hooks import Accept, ConnectRequest, Refuse


async def fail(rig: Rig, username: str, times: int = 10) -> None:
    for _ in range(times):
        await rig.ask("login", "nobody", username=username, password="not the password")


async def failures(rig: Rig, who: str = "admin") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rig.call("get_login_failure_list", who))["data"]
    return found


async def login_status(rig: Rig, username: str) -> int:
    status, _ = await rig.post(json.dumps({"action": "login", "username": username, "password": PASSWORD}).encode())
    return status


async def knock(rig: Rig, uid: str, pin: str, address: str = "10.9.9.9") -> Accept | Refuse:
    request = ConnectRequest(client_id=uid, username=f"user-{uid}", password=pin.encode(), address=address)
    verdict = await rig.platform.terminals.login.authenticate(request)
    assert isinstance(verdict, Accept | Refuse)
    return verdict


async def test_a_locked_out_user_is_seen_and_let_in_again(rig: Rig) -> None:
    assert await failures(rig) == []
    await fail(rig, "viewer-user", 3)
    [seen] = await failures(rig)
    assert (seen["kind"], seen["uid"], seen["failures"], seen["until"]) == ("user", "viewer-user", 3, None)
    assert (seen["address"], seen["permission_company_id"]) == ("127.0.0.1", "1")
    await fail(rig, "viewer-user", 7)
    [seen] = await failures(rig)
    assert seen["first_time"] <= seen["last_time"] < seen["until"]
    assert await login_status(rig, "viewer-user") == 429
    assert await rig.call("unlock_user", uid="viewer-user") == {"uid": "viewer-user"}
    assert await failures(rig) == []
    assert await login_status(rig, "viewer-user") == 200
    [told] = [each for each in (await rig.call("get_audit_list"))["data"] if each["action"] == "unlock"]
    assert (told["entity"], told["uid"], told["username"]) == ("user", "viewer-user", "admin-user")


async def test_a_locked_out_terminal_is_seen_and_let_in_again(rig: Rig) -> None:
    await rig.add_terminal("t1", username="user-t1", pin="pin-t1")
    for _ in range(10):
        await knock(rig, "t1", "wrong")
    verdict = await knock(rig, "t1", "pin-t1")
    assert isinstance(verdict, Refuse)
    assert verdict.reason is ConnAckReasonCode.CONNECTION_RATE_EXCEEDED
    [seen] = await failures(rig)
    assert (seen["kind"], seen["uid"], seen["address"], seen["failures"]) == ("terminal", "t1", "10.9.9.9", 10)
    assert seen["until"] is not None
    assert await rig.call("unlock_terminal", uid="t1") == {"uid": "t1"}
    assert isinstance(await knock(rig, "t1", "pin-t1"), Accept)
    [told] = [each for each in (await rig.call("get_audit_list"))["data"] if each["action"] == "unlock"]
    assert (told["entity"], told["uid"]) == ("terminal", "t1")


async def test_what_is_slowed_down_everywhere_is_seen_too(rig: Rig) -> None:
    await rig.add_terminal("t1", username="user-t1", pin="pin-t1")
    for last in range(100):
        await knock(rig, "t1", "wrong", f"10.8.8.{last}")
    assert isinstance(await knock(rig, "t1", "pin-t1"), Refuse)
    [everywhere] = [
        seen for seen in (await rig.call("get_login_failure_list", page_size=1000))["data"] if seen["until"]
    ]
    assert (everywhere["address"], everywhere["failures"]) == ("", 64), "of 64 addresses"
    await rig.call("unlock_terminal", uid="t1")
    assert isinstance(await knock(rig, "t1", "pin-t1"), Accept)


async def test_it_is_for_administrators_of_the_company(rig: Rig) -> None:
    await rig.add_terminal("mine", username="user-mine", pin="pin-mine")
    await knock(rig, "mine", "wrong")
    await fail(rig, "viewer-user")
    await fail(rig, "nobody at all")
    assert await failures(rig, "stranger") == []
    assert {seen["uid"] for seen in await failures(rig)} == {seen["uid"] for seen in await failures(rig, "root")}
    for action, uid in (("unlock_user", "viewer-user"), ("unlock_terminal", "mine")):
        assert (await rig.ask(action, "stranger", uid=uid))["code"] == 10404
        assert (await rig.ask(action, "operator", uid=uid))["code"] == 10403
    assert (await rig.ask("get_login_failure_list", "operator"))["code"] == 10403
    assert await login_status(rig, "viewer-user") == 429


async def test_pages_start_with_the_latest(rig: Rig) -> None:
    for name in ("viewer-user", "operator-user"):
        await fail(rig, name, 1)
    pages = [await rig.call("get_login_failure_list", page_index=index, page_size=1) for index in (1, 2, 3)]
    assert [[seen["uid"] for seen in page["data"]] for page in pages] == [["operator-user"], ["viewer-user"], []]
    assert pages[0]["total_records"] == 2
