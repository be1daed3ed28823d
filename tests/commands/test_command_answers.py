"""Made-up answers take no place of others' while the database is slow."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from platform_site import Site
from terrazzo.commands import unwritten_answers
from terrazzo.commands.unwritten_answers import OF_COMPANY, OF_TERMINAL, UnwrittenAnswers
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
