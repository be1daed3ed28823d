"""How a front is emptied: some terminals at a time, each when all that was read is acknowledged, late ones too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import cast

import pytest

from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.front_drain import FrontDrain
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.terminals.presence import PresenceRegister
from terrazzo_broker.hooks import Client
from waiting import until


class Parts:
    """The parts of a front that is drained, and what they were asked for."""

    def __init__(self) -> None:
        self.presence = PresenceRegister()
        self.is_settled = True  # all that was read is acknowledged
        self.looked = 0
        self.is_listening = True
        self.sent_away: list[list[str]] = []
        self._clients: dict[str, Client] = {}
        self._holding: set[str] = set()
        self.working: asyncio.Task[None] | None = None
        self.drain = FrontDrain(
            self.stop_listening,
            bus=cast(EmbeddedBus, self),
            ingest=cast(IngestPipeline, self),
            presence=self.presence,
        )

    def connect(self, *uids: str) -> None:
        for uid in uids:
            client = self._clients[uid] = Client(uid, None, 5, "", 0, "tcp", 1, 0)
            self.presence.on_connected(client)

    async def stop_listening(self) -> None:
        self.is_listening = False

    def pause_intake(self, holder: str) -> None:
        self._holding.add(holder)

    def resume_intake(self, holder: str) -> None:
        self._holding.remove(holder)

    async def is_idle(self, timeout_s: float) -> bool:
        assert timeout_s > 0
        assert self._holding, "else more is read meanwhile"
        self.looked += 1
        return self.is_settled

    def send_away(self, uids: Iterable[str]) -> None:
        assert self._holding
        assert not self.is_listening
        self.sent_away.append(list(uids))
        for uid in self.sent_away[-1]:
            self.presence.on_disconnected(self._clients.pop(uid), "this front is drained")


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    found = Parts()
    working = found.working = asyncio.create_task(found.drain.work())
    yield found
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def test_terminals_go_some_at_a_time_when_all_is_acknowledged(parts: Parts) -> None:
    parts.connect(*(f"t{number}" for number in range(450)))
    parts.is_settled = False
    parts.drain.begin()
    await until(lambda: parts.looked > 1, "it looks whether all is acknowledged, again and again")
    assert not parts.is_listening
    assert (parts.sent_away, parts.drain.clients) == ([], 450)
    parts.is_settled = True
    await until(lambda: not parts.drain.clients, "it is empty")
    assert [len(each) for each in parts.sent_away] == [200, 200, 50]


async def test_who_was_about_to_log_in_is_sent_away_too(parts: Parts) -> None:
    parts.connect("t1")
    parts.drain.begin()
    await until(lambda: not parts.drain.clients, "it is empty")
    assert parts.working is not None
    ended, _ = await asyncio.wait({parts.working}, timeout=1)
    assert not ended, "a login may take as long as a lease"
    parts.connect("late")
    await until(lambda: not parts.drain.clients, "it is empty again")
    assert parts.sent_away == [["t1"], ["late"]]


async def test_a_front_that_nobody_drains_is_left_alone(parts: Parts) -> None:
    parts.connect("t1")
    await asyncio.sleep(0)
    assert (parts.drain.is_begun, parts.is_listening, parts.looked, parts.sent_away) == (False, True, 0, [])
