"""Users change their own password, and get a new one by mail; what is stolen, guessed or late is refused and told."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from api_rig import PASSWORD, Rig, open_rig

from mail_server import MailBox, MailServer
from own_platform import Ports
from terrazzo.access import password_reset
from terrazzo.config.messenger import EmailSection, MessengerProjectSection
from terrazzo.times import now_us
from waiting import until

NEW = "quite another one"
MAIL = "viewer@plant.example"


async def asked(rig: Rig, action: str, token: str | None = None, **fields: Any) -> tuple[int, int, str]:
    status, answer = await rig.post(json.dumps({"action": action, **fields}).encode(), token=token)
    return status, answer["code"], answer["info"]


async def logs_in(rig: Rig, username: str, password: str) -> bool:
    return (await rig.ask("login", "nobody", username=username, password=password))["code"] == 200


async def test_a_new_password_ends_all_tokens_and_gives_one(rig: Rig) -> None:
    old = rig.tokens["viewer"]
    answer = await rig.call("change_password", "viewer", old_password=PASSWORD, password=NEW)
    assert (await asked(rig, "ping", old))[1] == 10402
    assert (await asked(rig, "ping", answer["token"]))[1] == 200
    assert not await logs_in(rig, "viewer-user", PASSWORD)
    assert await logs_in(rig, "viewer-user", NEW)
    told = (await rig.call("get_audit_list", username="viewer-user"))["data"]
    [changed] = [each for each in told if each["action"] == "update"]
    assert (changed["username"], changed["uid"]) == ("viewer-user", "viewer-user")
    assert changed["after"] == {"password": "******"}


async def test_a_change_needs_the_old_password_and_is_throttled_as_a_login(rig: Rig) -> None:
    for _ in range(10):
        wrong = await asked(rig, "change_password", rig.tokens["viewer"], old_password="a guess", password=NEW)
        assert wrong == (200, 10401, "old_password: is wrong")
    status, _, info = await asked(rig, "change_password", rig.tokens["viewer"], old_password=PASSWORD, password=NEW)
    assert (status, "too many failed logins" in info) == (429, True)
    assert (await asked(rig, "login", username="viewer-user", password=PASSWORD))[0] == 429, "they count together"
    assert (await asked(rig, "ping", rig.tokens["viewer"]))[1] == 200
    refused = await asked(rig, "change_password", rig.tokens["admin"], old_password=PASSWORD, password=PASSWORD)
    assert refused == (200, 10401, "password: is the old one")
    short = await asked(rig, "change_password", rig.tokens["admin"], old_password=PASSWORD, password="short")
    assert short[2].startswith("password: ")


async def test_an_api_key_changes_no_password(rig: Rig) -> None:
    key = (await rig.call("create_api_key", name="k", role="admin"))["key"]
    refused = await asked(rig, "change_password", key, old_password=PASSWORD, password=NEW)
    assert refused == (200, 10403, "Authorization: an API key changes no password; log in")


async def test_nobody_gives_themselves_another_password_without_the_old_one(rig: Rig) -> None:
    """An administrator's open session, or key, is no way around it."""
    key = (await rig.call("create_api_key", name="k", role="admin"))["key"]
    own = "password: yours is changed by change_password, which asks for the old one"
    for uid in ("admin-user", str((await rig.call("get_user_item", uid="admin-user"))["id"])):
        assert await asked(rig, "update_user", rig.tokens["admin"], uid=uid, password=NEW) == (200, 10403, own)
    assert await asked(rig, "update_user", rig.tokens["root"], uid="admin", password=NEW) == (200, 10403, own)
    for uid in ("admin-user", "viewer-user"):
        refused = await asked(rig, "update_user", key, uid=uid, password=NEW)
        assert refused == (200, 10403, "Authorization: an API key changes no password; log in")
    assert (await asked(rig, "update_user", key, uid="viewer-user", email="a@b.example"))[1] == 200
    assert (await asked(rig, "login", username="admin-user", password=PASSWORD))[1] == 200
    assert (await asked(rig, "update_user", rig.tokens["admin"], uid="viewer-user", password=NEW))[1] == 200


class Clock:
    """Runs with real time, and can be put forward."""

    ahead_us = 0

    def __call__(self) -> int:
        return now_us() + self.ahead_us


@asynccontextmanager
async def with_mail(folder: Path, **users: Any) -> AsyncIterator[tuple[Rig, MailBox, Clock]]:
    """A platform whose users reset their passwords by mail, and what its mail server took."""
    box, clock = MailBox(), Clock()
    async with MailServer(box) as server:
        email = EmailSection(host="127.0.0.1", port=server.port, tls="off", sender="Plant <plant@plant.example>")
        project = MessengerProjectSection(id=7, name="accounts", email=email)
        sections: dict[str, Mapping[str, Any]] = {"messenger": {"project": (project,)}}
        sections["users"] = {"reset_project": 7, "reset_url": "https://console.example/reset", **users}
        async with open_rig(folder, ports=Ports(clock=clock), **sections) as rig:
            await rig.call("update_user", uid="viewer-user", email=MAIL)
            yield rig, box, clock


async def mailed_code(rig: Rig, box: MailBox, username: str = "viewer-user") -> str:
    """Asks for a code; the one that came by mail."""
    before = len(box.taken)
    assert await rig.call("request_password_reset", "nobody", username=username) == {}
    await until(lambda: len(box.taken) > before)
    text = box.taken[-1][1].get_content()
    found = re.search(r"^[\w-]{43}(?=\r?$)", text, re.MULTILINE)
    assert found, text
    return found[0]


async def test_a_code_that_was_mailed_is_good_once(tmp_path: Path) -> None:
    async with with_mail(tmp_path) as (rig, box, _):
        code = await mailed_code(rig, box)
        recipients, mail = box.taken[0]
        assert recipients == [MAIL]
        assert "viewer-user" in mail.get_content()
        assert f"https://console.example/reset#{code}" in mail.get_content()
        old = rig.tokens["viewer"]
        short = await asked(rig, "reset_password", code=code, password="short")
        assert short[1] == 10401, "which costs no code"
        assert await rig.call("reset_password", "nobody", code=code, password=NEW) == {"username": "viewer-user"}
        assert (await asked(rig, "ping", old))[1] == 10402
        assert await logs_in(rig, "viewer-user", NEW)
        again = await asked(rig, "reset_password", code=code, password="something else")
        assert again == (200, 10401, "code: was used already; ask for a new one")
        assert await logs_in(rig, "viewer-user", NEW)
        actions = [each["action"] for each in (await rig.call("get_audit_list", username="viewer-user"))["data"]]
        assert {"mail_reset_code", "reset_password", "update"} <= set(actions)


async def test_a_refused_code_is_in_the_log_now_and_then(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def told() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == password_reset.__name__]

    async with with_mail(tmp_path, reset_minutes=10) as (rig, box, clock):
        code = await mailed_code(rig, box)
        assert (await asked(rig, "reset_password", code=code, password="short"))[1] == 10401
        assert told() == [], "it is the password that is no good"
        clock.ahead_us += 10 * 60_000_000
        for _ in range(5):
            assert (await asked(rig, "reset_password", code=code, password=NEW))[1] == 10401
        late = "a code for a new password from 127.0.0.1 was refused: code: has expired; ask for a new one"
        assert told()[0] == late
        assert len(told()) < 5, "at most one within ten seconds"
        assert rig.platform.parts.logins.password_resets.stats.refused == 5
    assert code not in caplog.text
    assert NEW not in caplog.text


async def test_a_stolen_or_late_code_is_no_good(tmp_path: Path) -> None:
    async with with_mail(tmp_path, reset_minutes=10) as (rig, box, clock):
        first, second = await mailed_code(rig, box), await mailed_code(rig, box)
        assert await rig.call("reset_password", "nobody", code=second, password=NEW) == {"username": "viewer-user"}
        stolen = await asked(rig, "reset_password", code=first, password="the thief's own")
        assert stolen == (200, 10401, "code: is from before the password was last changed; ask for a new one")
        third = await mailed_code(rig, box)
        clock.ahead_us += 10 * 60_000_000
        late = await asked(rig, "reset_password", code=third, password="the thief's own")
        assert late == (200, 10401, "code: has expired; ask for a new one")
        for guess in (third[:-1], "x", third + "A", "ä" * 43):
            refused = await asked(rig, "reset_password", code=guess, password="the thief's own")
            assert refused == (200, 10401, "code: is unknown; ask for a new one")
        assert await logs_in(rig, "viewer-user", NEW)


async def test_a_code_of_a_user_who_is_deactivated_is_no_good(tmp_path: Path) -> None:
    async with with_mail(tmp_path) as (rig, box, _):
        code = await mailed_code(rig, box)
        await rig.call("update_user", uid="viewer-user", is_active=0)
        refused = await asked(rig, "reset_password", code=code, password=NEW)
        assert refused == (200, 10401, "code: is of a user who is deactivated")
        await rig.call("update_user", uid="viewer-user", is_active=1)
        assert (
            "before the password was last changed" in (await asked(rig, "reset_password", code=code, password=NEW))[2]
        )
        await rig.call("delete_user", uid="viewer-user")
        assert (await asked(rig, "reset_password", code=code, password=NEW))[2] == "code: is unknown; ask for a new one"


async def test_nothing_tells_a_known_user_from_an_unknown_one(tmp_path: Path) -> None:
    async with with_mail(tmp_path) as (rig, box, _):
        resets = rig.platform.gateway.services.password_resets
        answers = []
        for name in ("viewer-user", "no such user", "operator-user", "温度" * 300):  # the operator has no address
            answers.append(await rig.ask("request_password_reset", "nobody", username=name))
        assert {json.dumps(answer) for answer in answers} == {json.dumps(answers[0])}
        assert answers[0]["code"] == 200
        await until(lambda: resets.stats.sent + resets.stats.left == 4)
        assert (resets.stats.sent, len(box.taken)) == (1, 1)


def files_with(folder: Path, text: str) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file() and text.encode() in each.read_bytes()]


async def test_codes_are_neither_in_the_database_nor_in_the_journal(tmp_path: Path) -> None:
    async with with_mail(tmp_path) as (rig, box, _):
        code = await mailed_code(rig, box)
        assert (await rig.call("get_message_list", "root"))["data"] == []
        assert files_with(tmp_path, code) == []


async def test_mails_are_few_for_a_user_and_requests_for_an_address(tmp_path: Path) -> None:
    async with with_mail(tmp_path) as (rig, box, clock):
        resets = rig.platform.gateway.services.password_resets
        for _ in range(5):
            await rig.call("request_password_reset", "nobody", username="viewer-user")
        await until(lambda: resets.stats.sent + resets.stats.left == 5)
        assert len(box.taken) == 3
        statuses = [(await asked(rig, "request_password_reset", username="nobody"))[0] for _ in range(20)]
        assert statuses[0] == 200
        assert statuses[-1] == 429
        clock.ahead_us += 3_601 * 1_000_000
        await mailed_code(rig, box)


async def test_tries_of_codes_are_few_for_an_address(tmp_path: Path) -> None:
    async with with_mail(tmp_path) as (rig, _, _):
        tries = [await asked(rig, "reset_password", code="a guess", password=NEW) for _ in range(30)]
        assert tries[0] == (200, 10401, "code: is unknown; ask for a new one")
        assert tries[-1][0] == 429


async def test_a_mail_server_that_refuses_stops_nothing(tmp_path: Path) -> None:
    async with with_mail(tmp_path) as (rig, box, _):
        resets = rig.platform.gateway.services.password_resets
        box.rcpt_answers[MAIL] = ["550 nobody here"]
        await rig.call("request_password_reset", "nobody", username="viewer-user")
        await until(lambda: resets.stats.failed == 1)
        await mailed_code(rig, box)


async def test_without_mail_everybody_is_told_so(rig: Rig) -> None:
    for name in ("viewer-user", "nobody"):
        answer = await asked(rig, "request_password_reset", username=name)
        assert answer[1:] == (
            10401,
            "action: no mail is configured for this (users.reset_project); ask an administrator",
        )
