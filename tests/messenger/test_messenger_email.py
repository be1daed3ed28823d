"""E-mail over a real SMTP server: TLS with a private authority, login, attachments, refusals, greylists, silence."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from messenger_rig import ACTOR, Clock, email, running_messenger, section_of

from certificate_authority import Authority
from mail_server import PASSWORD, USER, MailBox, MailServer
from terrazzo.ports.providers import Attachment
from waiting import until


def project(port: int, **keys: Any) -> dict[str, Any]:
    mail = {"host": "127.0.0.1", "port": port, "sender": "Plant <plant@example.com>", "tls": "off", "timeout_s": 5}
    return {"id": 1, "name": "plant", "email": mail | keys}


def server_context(authority: Authority) -> ssl.SSLContext:
    pair = authority.issue("mail")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


async def test_starttls_login_and_attachments(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    async with MailServer(MailBox(), tls=server_context(authority), login=True) as server:
        keys = {"tls": "starttls", "tls_ca": str(authority.ca), "username": USER, "password": PASSWORD}
        async with running_messenger(tmp_path, section_of(project(server.port, **keys))) as messenger:
            files = (
                Attachment("Größe.csv", "text/csv", b"a;b\r\n1;2"),
                Attachment("x.bin", "weird", bytes(range(256))),
            )
            (row,) = await messenger.submit(ACTOR, email("a@example.com", "b@example.com", attachments=files))
    assert (row["state"], row["svc_code"], row["attempts"]) == ("sent", "250", 1)
    ((recipients, mail),) = server.box.taken
    assert server.box.over_tls == [True]
    assert recipients == ["a@example.com", "b@example.com"]
    assert (mail["Subject"], mail["From"]) == ("Überlauf", "Plant <plant@example.com>")
    assert mail["Message-ID"] == row["response"]["message_id"]
    body, first, second = mail.iter_parts()
    assert body.get_content().splitlines() == ["Tank 7", "is full"]
    assert first.get_filename() == "Größe.csv"
    assert first.get_payload(decode=True) == b"a;b\r\n1;2"
    assert second.get_payload(decode=True) == bytes(range(256))
    assert PASSWORD not in str(row)


@pytest.mark.parametrize(
    ("keys", "state", "said"),
    [
        ({"tls": "starttls"}, "queued", "certificate"),  # of an authority that isn't known
        ({"password": "wrong", "username": USER}, "failed", "login refused"),
    ],
)
async def test_who_isnt_trusted_is_told_nothing(tmp_path: Path, keys: dict[str, Any], state: str, said: str) -> None:
    authority = Authority(tmp_path / "ca")
    async with MailServer(MailBox(), tls=server_context(authority), login=True) as server:
        ca = {} if "password" not in keys else {"tls": "starttls", "tls_ca": str(authority.ca)}
        async with running_messenger(tmp_path, section_of(project(server.port, **ca, **keys))) as messenger:
            (row,) = await messenger.submit(ACTOR, email("a@example.com"))
    assert row["state"] == state, row["reason"]
    assert said in row["reason"]
    assert server.box.taken == []


async def test_a_refused_recipient_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    box = MailBox(rcpt_answers={"gone@example.com": ["550 5.1.1 no such user"]})
    async with MailServer(box) as server, running_messenger(tmp_path, section_of(project(server.port))) as messenger:
        (row,) = await messenger.submit(ACTOR, email("a@example.com", "gone@example.com"))
    assert (row["state"], row["svc_code"]) == ("failed", "550")
    assert "no such user" in row["svc_msg"]
    assert row["response"]["recipients"]["a@example.com"]["outcome"] == "sent"
    assert [recipients for recipients, _ in box.taken] == [["a@example.com"]]


async def test_a_greylisted_recipient_is_tried_again_alone(tmp_path: Path) -> None:
    clock, box = Clock(), MailBox(rcpt_answers={"b@example.com": ["451 4.7.1 greylisted"]})
    async with (
        MailServer(box) as server,
        running_messenger(tmp_path, section_of(project(server.port)), clock=clock) as messenger,
    ):
        (row,) = await messenger.submit(ACTOR, email("a@example.com", "b@example.com"))
        assert (row["state"], row["svc_code"], row["pending"]) == ("queued", "451", ["b@example.com"])
        clock.ahead_us += 6_000_000
        messenger.wake()
        await until(lambda: len(box.taken) == 2, "the second attempt")
        await until(lambda: messenger.stats.sent == 1, "it is journaled")
        row = await messenger.journal.item(ACTOR, row["id"])
    assert (row["state"], row["attempts"]) == ("sent", 2)
    assert [recipients for recipients, _ in box.taken] == [["a@example.com"], ["b@example.com"]]
    assert len({mail["Message-ID"] for _, mail in box.taken}) == 1


async def test_a_server_that_is_away_or_refuses_for_now_is_asked_again_until_it_is_enough(tmp_path: Path) -> None:
    clock, box = Clock(), MailBox(data_answers=["452 4.3.1 disk full"] * 3)
    async with (
        MailServer(box) as server,
        running_messenger(tmp_path, section_of(project(server.port) | {"attempts": 3}), clock=clock) as messenger,
    ):
        (row,) = await messenger.submit(ACTOR, email("a@example.com"))
        assert (row["state"], row["svc_msg"]) == ("queued", "4.3.1 disk full")
        clock.ahead_us += 1_000_000_000
        messenger.wake()
        await until(lambda: messenger.stats.retries == 2, "the second attempt")
        clock.ahead_us += 1_000_000_000
        messenger.wake()
        await until(lambda: messenger.stats.failed == 1, "the third and last attempt")
        row = await messenger.journal.item(ACTOR, row["id"])
    assert (row["state"], row["attempts"]) == ("failed", 3)
    assert "given up after 3 attempts" in row["reason"]
    assert box.taken == []


async def test_silence_after_the_data_is_an_unknown_end_and_nothing_is_sent_again(tmp_path: Path) -> None:
    clock, box = Clock(), MailBox(hangs_after_data=True)
    async with (
        MailServer(box) as server,
        running_messenger(tmp_path, section_of(project(server.port, timeout_s=1)), clock=clock) as messenger,
    ):
        (row,) = await messenger.submit(ACTOR, email("a@example.com"))
        assert row["state"] == "unknown"
        assert "after the mail was handed over" in row["reason"]
        clock.ahead_us += 1_000_000_000
        messenger.wake()
        assert await messenger.journal.next_due_us(1) == {}
    assert len(box.taken) == 1


async def test_no_server_at_all(tmp_path: Path) -> None:
    async with running_messenger(tmp_path, section_of(project(1))) as messenger:
        (row,) = await messenger.submit(ACTOR, email("a@example.com"))
    assert (row["state"], row["response"]["recipients"]["a@example.com"]["outcome"]) == ("queued", "later")
