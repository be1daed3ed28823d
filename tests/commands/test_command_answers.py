"""Made-up answers take no place of others' while the database is slow."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import msgspec
import pytest

from platform_site import Site
from terrazzo.commands import unwritten_answers
from terrazzo.commands.unwritten_answers import OF_COMPANY, OF_COMPANY_BYTES, OF_TERMINAL, UnwrittenAnswers
from terrazzo.domain.answers import answer_text
from terrazzo.domain.payload import decode
from waiting import until


def made_up(answers: UnwrittenAnswers, terminals: int, company_id: int) -> int:
    """How many of a flood are kept."""
    names = [f"{company_id}-{number}" for number in range(terminals)]
    return sum(answers.take(name, f"{number:032x}", company_id) for name in names for number in range(200))


def test_terminals_and_companies_have_shares() -> None:
    answers = UnwrittenAnswers()
    assert made_up(answers, 1, 1) == OF_TERMINAL
    assert made_up(answers, 100, 2) == OF_COMPANY
    assert answers.take("3-0", "a" * 32, 3)
    answers.on_written(OF_TERMINAL + OF_COMPANY + 1)
    assert made_up(answers, 1, 1) == OF_TERMINAL


def test_an_answer_to_what_was_sent_always_has_room_once() -> None:
    answers = UnwrittenAnswers()
    for number in range(300):
        answers.note_sent("t", f"{number:032x}")
    assert made_up(answers, 100, 1) == OF_COMPANY
    assert all(answers.take("t", f"{number:032x}", 1) for number in range(300))
    assert not answers.take("t", "0" * 32, 1)  # a second one, of the company whose share is full
    assert not answers.take("other", "0" * 32, 1)
    answers.on_written(OF_COMPANY + 300)
    assert answers.take("t", "0" * 32, 1)


async def command_is(site: Site, actor: Any, state: str) -> None:
    """Waits until a company's newest command is in a state."""
    async with asyncio.timeout(15):
        while (await site.commands.page(actor)).rows[0]["state"] != state:  # noqa: ASYNC110 - the database's
            await asyncio.sleep(0.01)


async def test_a_flood_of_made_up_answers_leaves_others_theirs(site: Site, peer: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(unwritten_answers, "MAX_ANSWERS", 100)
    ours, theirs = await site.company("ours"), await site.company("theirs")
    await ours.terminal("flood")
    await theirs.terminal("honest")
    flood, honest = peer("flood"), peer("honest")
    for each, name in ((flood, "flood"), (honest, "honest")):
        assert await each.connect() == 0
        assert await each.subscribe(f"p2p/{name}") == 1
    await site.commands.submit(theirs.actor, "honest", "Diag", "")
    (message,) = await honest.received(1)
    await command_is(site, theirs.actor, "delivered")  # its acknowledgement is written before nothing is any more

    go_on = asyncio.Event()
    apply = site.commands._journal.apply

    async def slow(changes: Any) -> None:
        await go_on.wait()
        await apply(changes)

    monkeypatch.setattr(site.commands._journal, "apply", slow)
    for _ in range(200):
        await flood.publish("g/n", b"{}", correlation=uuid.uuid4().hex.encode())
    await honest.publish("g/n", b'{"ok": 1}', correlation=message.properties.CorrelationData)
    await until(lambda: site.commands.stats.answers_dropped >= 200 - OF_TERMINAL, "the flood is over its share")
    assert (await site.commands.page(theirs.actor)).rows[0]["state"] == "delivered"
    go_on.set()
    await command_is(site, theirs.actor, "answered")


def test_bytes_have_shares_and_what_was_expected_is_noted() -> None:
    answers, size = UnwrittenAnswers(), OF_COMPANY_BYTES // 4
    for number in range(10):
        answers.note_sent("t", f"{number:032x}")
    assert [answers.take("t", f"{number:032x}", 1, size=size, now_us=10**15) for number in range(6)].count(True) == 4
    assert answers.short_us == 10**15 - 60_000_000
    assert answers.take("other", "a" * 32, 2, size=size), "another company has its own"
    assert answers.kept() == {1: (4 * size, 4), 2: (size, 1)}
    answers.on_written(5)
    assert answers.take("t", "5".zfill(32), 1, size=2 * OF_COMPANY_BYTES), "one has room, however long it is"
    assert not answers.take("t", "6".zfill(32), 1, size=1)
    answers.on_written(1)
    assert answers.kept() == {}


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1,  "b": {"c": "\\u00e9 \xc3\xa9"}, "a": 2.50, "n": null}',
        b'{"big": 9223372036854775807, "small": 1e-300, "pair": "\\ud83d\\ude00"}',
    ],
)
def test_a_long_answer_reads_as_a_short_one(body: bytes) -> None:
    long = body + b" " * 20_000
    assert answer_text(long) == long.decode(), "it is not read again"
    assert msgspec.json.decode(answer_text(long)) == msgspec.json.decode(answer_text(body)) == decode(body)


async def test_long_answers_count_for_their_company_and_all_are_journaled_in_the_end(
    site: Site, peer: Any, monkeypatch: Any
) -> None:
    """While the database takes nothing; a thousand of a megabyte were kept of a company, and written in one go."""
    monkeypatch.setattr(unwritten_answers, "OF_COMPANY_BYTES", 100_000)
    company = await site.company("ours")
    await company.terminal("t1")
    terminal = peer("t1")
    assert await terminal.connect() == 0
    assert await terminal.subscribe("p2p/t1") == 1
    for _ in range(5):
        await site.commands.submit(company.actor, "t1", "Diag", "")
    messages = await terminal.received(5)
    await command_is(site, company.actor, "delivered")
    go_on, apply = asyncio.Event(), site.commands._journal.apply

    async def slow(changes: Any) -> None:
        await go_on.wait()
        await apply(changes)

    monkeypatch.setattr(site.commands._journal, "apply", slow)
    payload = b'{"text": "' + b"x" * 40_000 + b'"}'
    for message in messages:
        await terminal.publish("g/n", payload, correlation=message.properties.CorrelationData)
    await until(lambda: site.commands.stats.answers_dropped == 3, "two of five have room")
    owner = company.actor.company_id
    assert site.commands.kept()[owner] == (2 * len(payload), 2)
    memory = site.platform.gateway.services.memory
    await until(lambda: memory.by_kind()["commands"] > 2 * len(payload), "it is counted")
    go_on.set()
    async with asyncio.timeout(30):
        while {row["state"] for row in (await site.commands.page(company.actor)).rows} != {"answered"}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert site.commands.kept() == {}
