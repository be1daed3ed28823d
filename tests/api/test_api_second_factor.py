"""A second factor: enrolled, confirmed, asked for at each login, good once, told to nobody who lacks the password."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from api_rig import PASSWORD, Rig, open_rig

from own_platform import Ports
from terrazzo.access.second_factor import RECOVERY_CODES
from terrazzo.times import now_us

USER = {"username": "viewer-user", "password": PASSWORD}


class Clock:
    """Stands in the middle of a step, and goes on a step at a time."""

    def __init__(self) -> None:
        self.time_s = now_us() // 30_000_000 * 30 + 15

    def __call__(self) -> int:
        return self.time_s * 1_000_000


def code_of(secret: str, time_s: float) -> str:
    """RFC 6238 as its text has it, apart from the library of the platform."""
    mac = hmac.digest(base64.b32decode(secret), struct.pack(">Q", int(time_s) // 30), hashlib.sha1)
    offset = mac[-1] & 15
    return f"{(struct.unpack_from('>I', mac, offset)[0] & 0x7FFFFFFF) % 1_000_000:06}"


def test_the_test_reads_the_rfc_as_it_is() -> None:
    assert code_of(base64.b32encode(b"12345678901234567890").decode(), 59) == "287082"


class App:
    """A user's authenticator app, and the user."""

    def __init__(self, rig: Rig, clock: Clock) -> None:
        self.rig = rig
        self.clock = clock
        self.secret = ""
        self.recovery: list[str] = []
        self.token = ""

    def code(self, ahead_s: int = 0) -> str:
        return code_of(self.secret, self.clock.time_s + ahead_s)

    async def enrol(self) -> None:
        made = await self.rig.call("enrol_second_factor", "nobody", **USER)
        self.secret = made["secret"]
        uri = urlsplit(made["uri"])
        assert (uri.scheme, uri.netloc, uri.path) == ("otpauth", "totp", "/Terrazzo:viewer-user")
        assert parse_qs(uri.query)["secret"] == [self.secret]

    async def confirm(self) -> None:
        made = await self.rig.call("confirm_second_factor", "nobody", **USER, code=self.code())
        self.recovery, self.token = made["recovery_codes"], made["token"]
        self.clock.time_s += 30

    async def login(self, code: str | None = None, **fields: Any) -> dict[str, Any]:
        return await self.rig.ask("login", "nobody", **{**USER, **fields}, code=code)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    clock = Clock()
    async with open_rig(tmp_path, ports=Ports(clock=clock)) as rig:
        yield App(rig, clock)


@pytest.fixture
async def enrolled(app: App) -> App:
    await app.enrol()
    await app.confirm()
    return app


async def ping(rig: Rig, token: str) -> int:
    return int((await rig.post(b'{"action": "ping"}', token=token))[1]["code"])


async def test_a_secret_is_in_force_when_it_is_confirmed(app: App) -> None:
    await app.enrol()
    assert (await app.login())["code"] == 200, "not yet"
    first = app.secret
    await app.enrol()
    assert app.secret != first
    wrong = await app.rig.ask("confirm_second_factor", "nobody", **USER, code=code_of(first, app.clock.time_s))
    assert (wrong["code"], wrong["info"]) == (10402, "code: is wrong")
    before = app.rig.tokens["viewer"]
    await app.confirm()
    assert await ping(app.rig, before) == 10402, "tokens of before were given without a second factor"
    assert await ping(app.rig, app.token) == 200
    assert len({*app.recovery}) == RECOVERY_CODES
    needed = await app.login()
    assert (needed["code"], needed["result"]) == (10402, {"second_factor": "code"})
    assert needed["info"] == "code: is required: this user has a second factor"
    assert (await app.login(app.code()))["code"] == 200
    again = await app.rig.ask("enrol_second_factor", "nobody", **USER)
    assert again["info"].startswith("username: has a second factor already")
    assert (await app.rig.call("get_user_item", uid="viewer-user"))["has_second_factor"] == 1


async def test_a_code_is_good_once_and_for_a_while(enrolled: App) -> None:
    code = enrolled.code()
    assert (await enrolled.login(code))["code"] == 200
    replayed = await enrolled.login(code)
    assert (replayed["code"], replayed["info"]) == (10402, "code: was used already; wait for the next one")
    assert replayed["result"] == {}
    ahead = enrolled.code(30)
    assert (await enrolled.login(ahead))["code"] == 200, "an app's clock may be off by a step"
    earlier = await enrolled.login(enrolled.code())
    assert earlier["code"] == 10402, "what is older than the last one is no good either"
    for off_s in (-60, 60):
        assert (await enrolled.login(enrolled.code(off_s)))["info"] == "code: is wrong"


async def test_of_two_logins_with_one_code_at_once_one_gets_in(enrolled: App) -> None:
    code = enrolled.code()
    answers = await asyncio.gather(*(enrolled.login(code) for _ in range(4)))
    assert sorted(answer["code"] for answer in answers) == [200, 10402, 10402, 10402]


async def test_a_recovery_code_is_good_once(enrolled: App) -> None:
    first, second = enrolled.recovery[:2]
    assert (await enrolled.login(first))["code"] == 200
    again = await enrolled.login(first)
    assert (again["code"], again["info"]) == (10402, "code: is wrong, or a recovery code that was used already")
    assert (await enrolled.login(second.upper().replace("-", " ")))["code"] == 200
    fields = {**USER, "code": enrolled.code()}
    renewed = (await enrolled.rig.call("renew_recovery_codes", "nobody", **fields))["recovery_codes"]
    assert not {*renewed} & {*enrolled.recovery}
    assert (await enrolled.login(enrolled.recovery[2]))["code"] == 10402
    assert (await enrolled.login(renewed[0]))["code"] == 200


async def test_guessing_is_throttled_whatever_the_address(enrolled: App) -> None:
    for number in range(5):
        wrong = await enrolled.login(f"{number:06}")
        assert wrong["info"] in ("code: is wrong", "code: was used already; wait for the next one")
    body = json.dumps({"action": "login", **USER, "code": enrolled.code()}).encode()
    status, answer = await enrolled.rig.post(body)
    assert (status, answer["info"].startswith("code: too many wrong codes, try again in ")) == (429, True)
    enrolled.clock.time_s += 900
    assert (await enrolled.login(enrolled.code()))["code"] == 200
    told = (await enrolled.rig.call("get_audit_list", username="viewer-user"))["data"]
    assert {"reason": "wrong code"} in [each["after"] for each in told if each["action"] == "login_refused"]


async def test_who_lacks_the_password_learns_nothing_of_it(enrolled: App) -> None:
    infos = set()
    for name in ("viewer-user", "operator-user", "nobody at all"):
        for fields in ({}, {"code": enrolled.code()}):
            answer = await enrolled.rig.ask("login", "nobody", username=name, password="a wrong guess", **fields)
            infos.add((answer["code"], answer["info"], str(answer["result"])))
    assert infos == {(10402, "username or password is wrong", "{}")}


async def test_asking_for_the_code_counts_as_no_failure(enrolled: App) -> None:
    for _ in range(12):
        assert (await enrolled.login())["result"] == {"second_factor": "code"}
    assert (await enrolled.login(enrolled.code()))["code"] == 200


async def test_a_company_asks_its_users_for_one(app: App) -> None:
    rig = app.rig
    company = (await rig.call("get_company_list", "root"))["data"][0]["uid"]
    refused = await rig.ask("update_company", uid=company, name="home", needs_second_factor=1)
    assert refused["code"] == 10403, "the rule is a super user's"
    await rig.call("update_company", "root", uid=company, name="home", needs_second_factor=1)
    needed = await app.login()
    assert (needed["code"], needed["result"]) == (10402, {"second_factor": "enrol"})
    await app.enrol()
    await app.confirm()
    assert (await app.login(app.code()))["code"] == 200
    app.clock.time_s += 30
    kept = await rig.ask("disable_second_factor", "nobody", **USER, code=app.code())
    assert (kept["code"], kept["info"]) == (10403, "username: the company asks for a second factor")
    other = await rig.ask("login", "nobody", username="stranger-user", password=PASSWORD)
    assert other["code"] == 200, "another company's users are not asked"


async def test_it_is_taken_away_with_its_code_or_by_an_administrator(enrolled: App) -> None:
    rig = enrolled.rig
    wrong = await rig.ask("disable_second_factor", "nobody", **USER, code="000000")
    assert wrong["code"] == 10402
    assert await rig.call("disable_second_factor", "nobody", **USER, code=enrolled.code()) == {}
    assert await ping(rig, enrolled.token) == 10402
    assert (await enrolled.login())["code"] == 200
    await enrolled.enrol()
    await enrolled.confirm()
    for who, code in (("operator", 10403), ("stranger", 10404)):
        assert (await rig.ask("remove_second_factor", who, uid="viewer-user"))["code"] == code
    assert await rig.call("remove_second_factor", uid="viewer-user") == {"uid": "viewer-user"}
    assert (await enrolled.login())["code"] == 200
    none = await rig.ask("remove_second_factor", uid="viewer-user")
    assert (none["code"], none["info"]) == (10401, "uid: user viewer-user has no second factor")


async def test_administrators_take_their_own_away_as_everybody_does(enrolled: App) -> None:
    """An open session is no way around the code."""
    rig = enrolled.rig
    await rig.call("update_user", uid="viewer-user", role="admin")
    rig.tokens["enrolled"] = enrolled.token  # type: ignore[index]
    refused = await rig.ask("remove_second_factor", "enrolled", uid="viewer-user")
    reason = "uid: your own is taken away by disable_second_factor, which asks for its code"
    assert (refused["code"], refused["info"]) == (10403, reason)
    assert (await enrolled.login())["result"] == {"second_factor": "code"}


async def test_a_new_password_leaves_it_and_deletion_takes_it(enrolled: App) -> None:
    rig = enrolled.rig
    await rig.call("update_user", uid="viewer-user", password="quite another one")
    assert (await enrolled.login(password="quite another one"))["result"] == {"second_factor": "code"}
    await rig.call("delete_user", uid="viewer-user")
    await rig.call("create_user", **USER, role="viewer")
    assert (await enrolled.login())["code"] == 200


async def test_secrets_are_sealed_and_codes_hashed_at_rest(enrolled: App, tmp_path: Path) -> None:
    for text in (enrolled.secret, enrolled.recovery[0], enrolled.recovery[0].replace("-", "")):
        assert files_with(tmp_path, text) == []
    assert enrolled.secret not in str(await enrolled.rig.call("get_audit_list", "root"))


def files_with(folder: Path, text: str) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file() and text.encode() in each.read_bytes()]
