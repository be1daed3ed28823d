"""Commands from the dispatcher to a bus that delivers at once, journaled in SQLite: one client, and 32.

    python benchmarks/commands.py [--seconds 4]

Without HTTP, broker and terminal: what the journal and its syncs leave of it. ``terrazzo bench`` has the whole way.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvloop

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from migrated import first_start, seed
from open_stores import supervisor
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.commands.journal import CommandJournal
from terrazzo.database.database import Database
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.ports.bus import DeliveryFate

_CLIENTS = 32
_WAY_S = 0.0002  # to a terminal and back
_ACTOR = Actor(user_id=1, username="u", company_id=1, role=Role.OPERATOR)


class CountingJournal(CommandJournal):
    """Counts the transactions that steps have for themselves."""

    own = 0

    async def apply(self, changes: Any) -> None:
        self.own += 1
        await super().apply(changes)


class Load:
    """Clients, each with a terminal, that give a command when the one before has arrived and is answered."""

    def __init__(self, journal: CountingJournal) -> None:
        registry = Registry()
        for number in range(_CLIENTS):
            uid = f"t{number}"
            registry.put_terminal(
                Terminal(
                    id=number + 1, uid=uid, name=uid, company_id=1, type="Other", mode="pwd", username=uid, pin="p"
                )
            )
        self._arrivals: dict[str, asyncio.Future[None]] = {}
        self.tasks = supervisor()
        bus: Any = SimpleNamespace(send=self._send)
        files: Any = None
        self.commands = CommandDispatcher(journal, registry=registry, bus=bus, configurations=files, tasks=self.tasks)

    def _send(self, uid: str, _payload: bytes, *, on_fate: Any, **_: Any) -> bool:
        def arrive() -> None:
            self._arrivals.pop(uid).set_result(None)
            on_fate(DeliveryFate.DELIVERED)

        asyncio.get_running_loop().call_later(_WAY_S, arrive)
        return True

    async def client(self, uid: str, seconds: float) -> list[float]:
        """What each command took."""
        took, until_s = [], time.perf_counter() + seconds
        while time.perf_counter() < until_s:
            began_s = time.perf_counter()
            arrived = self._arrivals[uid] = asyncio.get_running_loop().create_future()
            await asyncio.gather(self.commands.submit(_ACTOR, uid, "SP", 1), arrived)
            took.append(time.perf_counter() - began_s)
        return took


async def main() -> None:
    """Prints one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        data = seed(Path(folder) / "data", first_start)
        database = await Database.open("", data_dir=data)
        journal = CountingJournal(database)
        load = Load(journal)
        await load.commands.start()
        await load.client("t0", 0.5)
        before = journal.own
        took = sorted(await load.client("t0", seconds))
        own = (journal.own - before) / len(took)
        used_s = time.process_time()
        many = sum(map(len, await asyncio.gather(*(load.client(f"t{n}", seconds) for n in range(_CLIENTS)))))
        used_us = (time.process_time() - used_s) / many * 1e6
        await load.commands.stop()
        await load.tasks.close()
        await database.close()
    print(
        f"one client: p50 {took[len(took) // 2] * 1e3:.2f} ms, {own:.2f} transactions of steps alone a command; "
        f"{_CLIENTS} clients: {many / seconds:,.0f}/s, {used_us:.0f} us of CPU each"
    )


if __name__ == "__main__":
    uvloop.run(main())
