"""The envelope, and requests that reach no operation, over every transport; status codes over HTTP."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from contract_world import Door, World, ask
from gateway_tables import ACTIONS, Action

from terrazzo.access.tokens import load_token_key

ENVELOPE = {"resp", "actionid", "code", "msg", "info", "result"}
FOR_PROGRAMS = {"reason"}
"""What errors may say besides: ``info`` as code and parameters."""
GUARDED = [action for action in ACTIONS if action.name != "login"]


@pytest.mark.parametrize("actionid", ["", "7", "ünï", 7, 1.5, None, True, [1, {"a": 2}], {"b": []}])
def test_actionid_comes_back_unchanged(door: Door, actionid: Any) -> None:
    for request in ({"action": "ping"}, {"action": "no_such"}, {"action": "get_terminal_item"}, {"no": "action"}):
        answer = ask(door, {**request, "actionid": actionid})
        assert answer.keys() - FOR_PROGRAMS == ENVELOPE
        assert answer["actionid"] == actionid
        assert type(answer["actionid"]) is type(actionid)


def test_success_and_failure_have_the_same_fields(door: Door) -> None:
    answer = ask(door, {"action": "ping", "message": "hello"})
    assert answer == {
        "resp": "ping",
        "actionid": "",
        "code": 200,
        "msg": answer["msg"],
        "info": "",
        "result": {"pong": "hello"},
    }
    answer = ask(door, {"action": "get_terminal_item", "uid": "nobody"})
    assert (answer["resp"], answer["code"], answer["result"]) == ("get_terminal_item", 10404, {})
    assert answer["info"]


def test_an_unknown_action_is_named(door: Door) -> None:
    answer = ask(door, {"action": "get_everything"})
    assert (answer["resp"], answer["code"]) == ("get_everything", 10401)
    assert "get_everything" in answer["info"]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"{}", "action: is required"),
        (b'{"action": 7}', "action: expected str, got int"),
        (b'{"action": null}', "action: expected str, got null"),
        (b"[]", "body: expected object, got array"),
        (b'"ping"', "body: expected object, got str"),
        (b"{broken", "body: not JSON"),
        (b'{"action": "ping"} and more', "body: not JSON"),
        (b'{"action": "ping", "message": "\xff"}', "body: not UTF-8 at byte 31"),
    ],
)
def test_a_message_that_is_no_request_is_answered(door: Door, message: bytes, reason: str) -> None:
    answer = door.send(message)
    assert answer.keys() - FOR_PROGRAMS == ENVELOPE
    assert (answer["code"], answer["result"]) == (10401, {})
    assert answer["info"].startswith(reason), answer["info"]


def bad_tokens(world: World) -> dict[str, str]:
    """Tokens that must not open anything."""
    key = load_token_key(world.platform.data)
    claims = jwt.decode(world.token, key, algorithms=["HS256"], options={"verify_aud": False})
    expired = jwt.encode({**claims, "iat": 1, "exp": 2}, key, algorithm="HS256")
    forged = jwt.encode(claims, b"another key of 32 bytes in all..", algorithm="HS256")
    unsigned = jwt.encode(claims, None, algorithm="none")
    return {
        "missing": "",
        "garbage": "not.a.token",
        "expired": expired,
        "forged": forged,
        "unsigned": unsigned,
        "cut": world.token[:-1],
    }


@pytest.mark.parametrize("which", ["missing", "garbage", "expired", "forged", "unsigned", "cut"])
def test_every_action_but_login_needs_a_good_token(world: World, door: Door, which: str) -> None:
    token = bad_tokens(world)[which]
    let_in = []
    for action in GUARDED:
        for request in (world.request(action.name), {"action": action.name}):
            answer = door.send_as(token, json.dumps(request).encode())
            if (answer["code"], answer["result"]) != (10402, {}):
                let_in.append((action.name, answer["code"]))
    assert let_in == []


@pytest.mark.parametrize("action", [each for each in ACTIONS if each.name == "login"], ids=lambda each: each.name)
def test_a_wrong_password_is_10402(door: Door, action: Action) -> None:
    answer = ask(door, {"action": action.name, "username": "nobody-at-all", "password": "wrong"})
    assert (answer["code"], answer["result"]) == (10402, {})


def test_the_spellings_of_the_documents(world: World, door: Door) -> None:
    """Both are answered under the name that was asked for."""
    for documented, right in (
        ("publish_object_commnad_plus", "publish_object_command_plus"),
        ("close_retainer", "close"),
    ):
        for name in (documented, right):
            answer = ask(door, {"action": name})
            assert (answer["resp"], answer["code"]) == (name, 10401)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "GET"])
def test_only_post_is_allowed_over_http(world: World, method: str) -> None:
    status, answer = world.rehearsal.session.post(b'{"action": "ping"}', method=method)
    assert (status, answer["code"]) == (405, 10401)
    assert answer.keys() - FOR_PROGRAMS == ENVELOPE


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"]
)
def test_only_json_in_utf8_is_read_over_http(world: World, media_type: str) -> None:
    status, answer = world.rehearsal.session.post(b'{"action": "ping"}', Content_Type=media_type)
    assert (status, answer["code"]) == (415, 10401)


def test_http_statuses_of_what_reached_no_operation(world: World) -> None:
    session = world.rehearsal.session
    assert session.post(b'{"action": "nothing_like_it"}')[0] == 404
    assert session.post(b"{}", path="/nowhere")[0] == 404
    assert session.post(b" " * ((1 << 20) + 1))[0] == 413
