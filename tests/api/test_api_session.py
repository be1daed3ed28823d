"""Login, logout, ping, and tokens that are no good."""

from __future__ import annotations

import json
from pathlib import Path

import jwt
import pytest
from api_rig import PASSWORD, Rig, open_rig

from own_platform import Ports
from terrazzo.times import now_us

USER_FIELDS = {
    "id",
    "permission_company_id",
    "username",
    "head_image",
    "description",
    "mobile",
    "email",
    "is_active",
    "is_super",
    "is_default",
    "created_at",
    "updated_at",
    "token",
}


async def ping(rig: Rig, credential: str | None) -> tuple[int, str]:
    headers = {} if credential is None else {"Authorization": credential}
    status, answer = await rig.post(b'{"action": "ping"}', **headers)
    assert status == 200
    return answer["code"], answer["info"]


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


async def test_login_answers_the_user_with_a_token_that_works(rig: Rig) -> None:
    user = await rig.call("login", "nobody", username="viewer-user", password=PASSWORD)
    assert set(user) == USER_FIELDS
    assert (user["username"], user["permission_company_id"], user["is_super"]) == ("viewer-user", "1", 0)
    assert 200 < len(user["token"]) <= 512
    assert await ping(rig, f"Bearer {user['token']}") == (200, "")
    assert await ping(rig, f"bearer  {user['token']} ") == (200, "")


async def test_wrong_credentials_say_nothing_about_which(rig: Rig) -> None:
    wrong = await rig.ask("login", "nobody", username="viewer-user", password="not the password")
    unknown = await rig.ask("login", "nobody", username="no such user", password="not the password")
    assert wrong["code"] == unknown["code"] == 10402
    assert wrong["info"] == unknown["info"]
    assert wrong["result"] == {}


async def test_repeated_failures_have_to_wait(rig: Rig) -> None:
    body = json.dumps({"action": "login", "username": "viewer-user", "password": "guess, guess"}).encode()
    for _ in range(10):
        assert (await rig.post(body))[1]["code"] == 10402
    async with rig.http.post("/apiproxy/api", data=body, headers={"Content-Type": "application/json"}) as response:
        assert response.status == 429
        assert 0 < int(response.headers["Retry-After"]) <= 300
        assert (await response.json())["code"] == 500


async def test_logout_ends_the_token(rig: Rig) -> None:
    token = rig.tokens["operator"]
    assert await rig.call("logout", "operator") == {}
    code, info = await ping(rig, f"Bearer {token}")
    assert code == 10402
    assert "revoked" in info
    assert (await rig.ask("logout", "operator"))["code"] == 10402
    assert (await rig.ask("logout", "nobody"))["code"] == 10402


async def test_a_token_expires(tmp_path: Path) -> None:
    ahead_us = 0
    async with open_rig(tmp_path, ports=Ports(clock=lambda: now_us() + ahead_us)) as rig:
        assert await ping(rig, f"Bearer {rig.tokens['viewer']}") == (200, "")
        ahead_us = 2 * 3600 * 1_000_000
        code, info = await ping(rig, f"Bearer {rig.tokens['viewer']}")
        assert code == 10402
        assert "expired" in info


async def test_a_changed_password_and_a_deactivated_user_end_tokens(rig: Rig) -> None:
    users = rig.services.entities.users  # type: ignore[attr-defined]
    root = rig.services.tokens.verify(rig.tokens["root"])
    await users.update(root, "viewer-user", {"password": "another password"})
    await users.update(root, "operator-user", {"is_active": 0})
    assert (await ping(rig, f"Bearer {rig.tokens['viewer']}"))[0] == 10402
    assert (await ping(rig, f"Bearer {rig.tokens['operator']}"))[0] == 10402


@IN_MODULE
@pytest.mark.parametrize(
    "credential", [None, "", "Bearer", "Bearer ", "Basic dTpw", "Bearer x", "Bearer a.b.c", "Bearer " + "x" * 5000]
)
async def test_no_token_is_no_entry(shared_rig: Rig, credential: str | None) -> None:
    code, info = await ping(shared_rig, credential)
    assert code == 10402
    assert info


@IN_MODULE
async def test_a_forged_token_is_refused(shared_rig: Rig) -> None:
    claims = jwt.decode(shared_rig.tokens["root"], options={"verify_signature": False})
    for key, algorithm in (("x" * 32, "HS256"), (None, "none")):
        forged = jwt.encode(claims, key, algorithm=algorithm)  # type: ignore[arg-type]
        assert (await ping(shared_rig, f"Bearer {forged}"))[0] == 10402


@IN_MODULE
async def test_ping_returns_the_message(shared_rig: Rig) -> None:
    assert await shared_rig.call("ping", message="hello") == {"pong": "hello"}
    assert await shared_rig.call("ping", message="") == {"pong": "pong"}


async def test_a_request_may_carry_its_token_itself(rig: Rig) -> None:
    body = json.dumps({"action": "ping", "Authorization": f"Bearer {rig.tokens['viewer']}"}).encode()
    assert (await rig.post(body))[1]["code"] == 200
    bad = json.dumps({"action": "ping", "Authorization": 5}).encode()
    assert (await rig.post(bad, token=rig.tokens["viewer"]))[1]["code"] == 10402
