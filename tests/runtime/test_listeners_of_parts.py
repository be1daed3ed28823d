"""Each part's listeners are isolated: one that raises is counted, and the next one is told."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from migrated import seed
from support import new_tasks
from terrazzo.campaigns.download_links import SignedLinks, Ticket
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.events.events import EventRecords
from terrazzo.listeners import Listeners
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import Selector
from terrazzo.mapping.effect_queue import EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.effects import EventRaised
from terrazzo.metadata.entities import Entities
from terrazzo.terminals.presence import PresenceRegister
from waiting import until

TERMINAL = Terminal(id=1, uid="t1", name="t", company_id=1, type="Other", mode="pwd", username="u", pin="pin")


class Heard:
    """Listens behind one that raises."""

    def __init__(self, listeners: Listeners[Any]) -> None:
        self.news: list[tuple[Any, ...]] = []
        self._listeners = listeners
        listeners.listen(self._break)
        listeners.listen(lambda *news: self.news.append(news))

    @staticmethod
    def _break(*_news: Any) -> None:
        raise RuntimeError("planted")

    def check(self, times: int = 1) -> None:
        assert len(self.news) == self._listeners.failures == times


@pytest.fixture
async def database(tmp_path: Path):
    opened = await Database.open("", data_dir=seed(tmp_path))
    yield opened
    await opened.close()


def test_presence() -> None:
    presence = PresenceRegister()
    heard = Heard(presence.changes)
    client: Any = SimpleNamespace(
        client_id="t1", connected_us=1, address="", protocol=5, messages_in=0, last_packet_us=0, identity=None
    )
    presence.on_connected(client)
    presence.on_disconnected(client, "gone")
    heard.check(2)


def test_the_registry() -> None:
    registry = Registry()
    terminals, sharing = Heard(registry.terminal_changes), Heard(registry.sharing_changes)
    registry.put_terminal(TERMINAL)
    registry.put_object(1, ["t1"])
    registry.drop_object(1)
    registry.drop_terminal("t1")
    terminals.check(2)
    sharing.check(2)


def test_feeds() -> None:
    hub = LiveHub(Registry(), started_us=1)
    heard = Heard(hub.feed_changes)
    hub.open_feed(Selector(frozenset({"grid"}), company_id=1))
    heard.check()


async def test_downloads() -> None:
    class Files:
        async def open(self, company_id: int, uid: str) -> Any:
            return uid

    registry = Registry()
    registry.put_terminal(TERMINAL)
    links = SignedLinks(Files(), key=bytes(32), base_url="http://x", lifetime_s=60, terminal=registry.terminal)
    heard = Heard(links.downloads)
    ticket = Ticket(1, "0" * 32, "lua.bin", "t1", 2**40)
    assert await links.redeem(ticket, links.sign(ticket)) == "0" * 32
    heard.check()


async def test_records_of_the_registry(database: Database, tmp_path: Path) -> None:
    entities = Entities.open(database, Registry(), Secrets.open(tmp_path))
    heard = Heard(entities.companies.changes)
    await entities.companies.create(SYSTEM, {"name": "c"})
    heard.check()


async def test_effects_and_the_room_for_them(database: Database) -> None:
    queue = EffectQueue(EffectWriter(database), new_tasks(), limit=1)
    happened, room = Heard(queue.happened), Heard(queue.room)
    await queue.start({})
    queue.seal([raised(1)])
    queue.on_committed()
    await queue.settled(1)
    await until(lambda: room.news)
    await queue.stop()
    happened.check()
    room.check()


async def test_changes_of_events(database: Database) -> None:
    await EffectWriter(database).apply([(1, [raised(1)])])
    events = EventRecords(database, zone=UTC)
    heard = Heard(events.changes)
    async with database.reading() as connection:
        found = (await connection.execute(EVENT.select())).mappings().one()
    await events.comment(SYSTEM, found["id"], "seen")
    heard.check()


async def test_steps_of_commands() -> None:
    class Journal:
        async def add_requests(self, given: Any, *, steps: Any) -> Any:
            row = {"terminal_id": "t1", "company_id": 1, "uid": "1", "queued_us": 1, "expires_us": 2**62}
            return [[(row, True)]]

    registry = Registry()
    registry.put_terminal(TERMINAL)
    bus: Any = SimpleNamespace(send=lambda *_, **__: False, seen=lambda _: (False, None))
    journal: Any = Journal()
    configurations: Any = None
    commands = CommandDispatcher(journal, registry=registry, bus=bus, configurations=configurations, tasks=new_tasks())
    heard = Heard(commands.steps)
    await commands.submit(SYSTEM, "t1", "SP1", "5")
    heard.check()


def raised(number: int) -> EventRaised:
    return EventRaised(1, number, "t1", "HOT", "hot", "热", "90", "x > 80", "90", number)
