"""HTTP providers: bodies from templates, what answers mean, retries where they are safe, limits, secrets masked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messenger_rig import ACTOR, LOOPBACK, Clock, Provider, running_messenger, section_of, sms

from certificate_authority import Authority
from terrazzo.domain.template import fill, names_in
from terrazzo.errors import BadParameter, Conflict, Throttled
from waiting import until

SECRET = "very-secret-key"
BODY = '{"apikey": "constant-secret", "to": "{recipients}", "text": "[{recipient}] {msgdata}", "n": 1}'


def project(url: str, **keys: Any) -> dict[str, Any]:
    provider = {"url": url, "body": BODY, "headers": {"Authorization": f"Bearer {SECRET}"}, "timeout_s": 5}
    return {"id": 1, "name": "plant", "sms": provider | keys}


def section(url: str, **keys: Any) -> Any:
    return section_of(project(url, **keys), allow_private=list(LOOPBACK))


async def test_the_body_is_the_template_with_values_that_cannot_break_out(tmp_path: Path) -> None:
    async with Provider().running() as provider, running_messenger(tmp_path, section(provider.url)) as messenger:
        (row,) = await messenger.submit(ACTOR, sms("+1", "+2", text='", "n": 2, "x": "\n{recipients}'))
    ((request, body),) = provider.requests
    assert json.loads(body) == {
        "apikey": "constant-secret",
        "to": ["+1", "+2"],
        "text": '[+1] ", "n": 2, "x": "\n{recipients}',
        "n": 1,
    }
    assert request.headers["Authorization"] == f"Bearer {SECRET}"
    assert (row["state"], row["svc_code"]) == ("sent", "200")


async def test_a_form_and_a_request_for_each_recipient(tmp_path: Path) -> None:
    keys = {"format": "form", "per_recipient": True, "body": '{"mobile": "{recipient}", "text": "{msgdata}"}'}
    async with (
        Provider().running() as provider,
        running_messenger(tmp_path, section(provider.url, **keys)) as messenger,
    ):
        rows = await messenger.submit(ACTOR, sms("+1", "+2", text="a&b=ü"))
    assert [row["recipients"] for row in rows] == [["+1"], ["+2"]]
    forms = [parse_qs(body.decode()) for _, body in provider.requests]
    assert sorted(form["mobile"] for form in forms) == [["+1"], ["+2"]]
    assert all(form["text"] == ["a&b=ü"] for form in forms)


def kept_in(folder: Path, *texts: str) -> list[str]:
    """Which of these texts a file below the folder has."""
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [text for text in texts if any(text.encode() in content for content in contents)]


async def test_secrets_are_kept_nowhere(tmp_path: Path) -> None:
    echo = {"you sent": SECRET, "and": "constant-secret", "token": "query-secret"}
    async with Provider(answers=[(400, echo)]).running() as provider:
        url = f"{provider.url}?token=query-secret"
        async with running_messenger(tmp_path, section(url)) as messenger:
            (row,) = await messenger.submit(ACTOR, sms("+1"))
    assert (row["state"], row["svc_code"]) == ("failed", "400")
    assert "******" in row["request"]["body"]
    assert kept_in(tmp_path, SECRET, "constant-secret", "query-secret") == []
    assert kept_in(tmp_path, "say"), "the search finds what is there"


@pytest.mark.parametrize(
    ("status", "answer", "state", "code", "said"),
    [
        (200, {"r": {"code": "0", "text": "ok"}}, "sent", "0", "ok"),
        (200, {"r": {"code": 0, "text": "ok"}}, "sent", "0", "ok"),
        (200, {"r": {"code": 17, "text": "no credit"}}, "failed", "17", "no credit"),
        (200, "nonsense", "failed", "200", '"nonsense"'),
        (302, {"r": {"code": "0"}}, "failed", "0", None),
        (500, {"r": {"code": "x", "text": "oops"}}, "failed", "x", "oops"),
        (429, {"r": {"code": "x", "text": "slow down"}}, "queued", "x", "slow down"),
        (503, {"r": {"code": "x", "text": "later"}}, "queued", "x", "later"),
    ],
)
async def test_what_an_answer_means(
    tmp_path: Path, status: int, answer: Any, state: str, code: str, said: str | None
) -> None:
    keys = {"code_field": "r.code", "message_field": "r.text", "success": ["0"]}
    headers = {"Location": "/elsewhere"}
    async with (
        Provider(answers=[(status, answer)], headers=headers).running() as provider,
        running_messenger(tmp_path, section(provider.url, **keys)) as messenger,
    ):
        (row,) = await messenger.submit(ACTOR, sms("+1"))
    assert (row["state"], row["svc_code"]) == (state, code)
    assert said is None or row["svc_msg"] == said
    assert len(provider.requests) == 1, "redirects are not followed"


async def test_a_provider_that_never_answers_leaves_an_unknown_end(tmp_path: Path) -> None:
    async with (
        Provider(hangs=True).running() as provider,
        running_messenger(tmp_path, section(provider.url, timeout_s=1)) as messenger,
    ):
        (row,) = await messenger.submit(ACTOR, sms("+1"))
        assert await messenger.journal.next_due_us(1) == {}
    assert (row["state"], row["reason"]) == ("unknown", "no answer within 1 s")


async def test_a_provider_that_knows_messages_again_is_asked_again(tmp_path: Path) -> None:
    clock, body = Clock(), '{"id": "{message_id}", "text": "{msgdata}"}'
    async with Provider(hangs=True).running() as provider:
        keys = {"timeout_s": 1, "resend_unknown": True, "body": body}
        async with running_messenger(tmp_path, section(provider.url, **keys), clock=clock) as messenger:
            (row,) = await messenger.submit(ACTOR, sms("+1"))
            assert row["state"] == "queued"
            provider.hangs = False
            clock.ahead_us += 6_000_000
            messenger.wake()
            await until(lambda: messenger.stats.sent == 1, "the second attempt")
    assert [json.loads(body)["id"] for _, body in provider.requests] == [row["uid"]] * 2


async def test_a_stop_lets_what_is_being_sent_be_done(tmp_path: Path) -> None:
    async with Provider(hangs=True).running() as provider:
        async with running_messenger(tmp_path, section(provider.url)) as messenger:
            submitted = asyncio.create_task(messenger.submit(ACTOR, sms("+1")))
            await until(lambda: provider.requests, "the provider has it")
            provider.released.set()
        (row,) = await submitted
    assert row["state"] == "sent"


async def test_nobody_listens(tmp_path: Path) -> None:
    async with running_messenger(tmp_path, section("http://127.0.0.1:1/")) as messenger:
        (row,) = await messenger.submit(ACTOR, sms("+1"))
    assert row["state"] == "queued"


async def test_tls_with_an_authority_of_ones_own(tmp_path: Path) -> None:
    import ssl

    authority = Authority(tmp_path / "ca")
    pair = authority.issue("provider")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    async with Provider().running(context) as provider:
        url = provider.url.replace("http:", "https:")
        async with running_messenger(tmp_path / "a", section(url, tls_ca=str(authority.ca))) as messenger:
            (row,) = await messenger.submit(ACTOR, sms("+1"))
            assert row["state"] == "sent"
        async with running_messenger(tmp_path / "b", section(url)) as messenger:
            (row,) = await messenger.submit(ACTOR, sms("+1"))
            assert row["state"] == "queued"
            assert "certificate" in row["reason"]
    assert len(provider.requests) == 1


async def test_the_rate_limit_counts_over_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    async with Provider().running() as provider:
        limited = section_of(project(provider.url) | {"per_minute": 2}, allow_private=list(LOOPBACK))
        async with running_messenger(tmp_path, limited, clock=clock) as messenger:
            await messenger.submit(ACTOR, sms("+1"))
            await messenger.submit(ACTOR, sms("+1"))
            with pytest.raises(Throttled, match="sends 2 messages a minute at most") as refused:
                await messenger.submit(ACTOR, sms("+1"))
            assert 0 < refused.value.retry_after_s <= 60
        async with running_messenger(tmp_path, limited, clock=clock) as messenger:
            with pytest.raises(Throttled):
                await messenger.submit(ACTOR, sms("+1"))
            clock.ahead_us += 61_000_000
            (row,) = await messenger.submit(ACTOR, sms("+1"))
    assert row["state"] == "sent"
    assert len(provider.requests) == 3


async def test_an_idempotency_key_sends_once(tmp_path: Path) -> None:
    async with Provider().running() as provider, running_messenger(tmp_path, section(provider.url)) as messenger:
        (first,) = await messenger.submit(ACTOR, sms("+1", idempotency_key="k"))
        (second,) = await messenger.submit(ACTOR, sms("+1", idempotency_key="k"))
        assert first["id"] == second["id"]
        with pytest.raises(Conflict):
            await messenger.submit(ACTOR, sms("+2", idempotency_key="k"))
    assert len(provider.requests) == 1


async def test_projects_are_of_their_company(tmp_path: Path) -> None:
    theirs = section_of(project("http://x.example/") | {"company_id": 2})
    async with running_messenger(tmp_path, theirs) as messenger:
        with pytest.raises(BadParameter, match="no messenger project 1"):
            await messenger.submit(ACTOR, sms("+1"))
        assert messenger.projects.find(2, 1, "sms").section.name == "plant"
        with pytest.raises(BadParameter, match="project 1 sends no email"):
            messenger.projects.find(2, 1, "email")


@given(st.dictionaries(st.sampled_from(["msgdata", "recipient", "x"]), st.text()))
def test_filling_changes_no_structure(values: dict[str, str]) -> None:
    template = {"a": "{msgdata}", "b": ["x {recipient} y", 1, None], "c": {"d": "{unknown}{msgdata}"}}
    filled = fill(template, values)
    assert filled["a"] == values.get("msgdata", "")
    assert filled["b"] == [f"x {values.get('recipient', '')} y", 1, None]
    assert filled["c"] == {"d": values.get("msgdata", "")}
    assert set(names_in(template)) == {"msgdata", "recipient", "unknown"}
