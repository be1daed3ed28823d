"""Bombs of those who have logged in: is each refused in words, within bounds, while others are answered?

``python benchmarks/insider_bombs.py [--rounds N] [--only TEXT]`` starts a platform. Users and terminals of company A
send each bomb of ``bombs/``, four at a time, N rounds, while company B's user asks and its terminal pings without a
pause. Prints a line for each: what it was answered, how long it took, the most that the platform had in memory, and how
often B was answered. Exits 1, naming the bombs, where one was answered otherwise than it should, memory was beyond its
bound, something of B's failed, or the platform had ended or was not ready. How long B waits is ``neighbours.py``'s to
say: much of it is here the making of bombs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import aiohttp
import uvloop
from attacks.company import Company
from bombs.bomb import TAKEN, Bomb, Site
from bombs.requests import REQUESTS
from bombs.terminals import SEALED, TERMINALS
from neighbours import MEMORY_MB, Memory, limits, state_of

from mqtt_bytes import login
from running import Platform

AT_ONCE = 4
TIMEOUT_S = 60.0  # of anything, on any machine
PAUSE_S = 0.02
TERMINAL, PLAIN = "b-terminal", "terminal"


@dataclass
class Beside:
    """Company B's user and terminal, at work: how often they were answered, and what failed, since ``forget``."""

    site: Site
    asked: int = 0
    pinged: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    def forget(self) -> None:
        """Begins anew."""
        self.asked = self.pinged = 0
        self.failed.clear()

    async def run(self) -> None:
        """Both, until they are cancelled."""
        await asyncio.gather(self._ask(), self._ping())

    async def _ask(self) -> None:
        while True:
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    said = await self.site.call("viewer", "get_terminal_list", page_size=1)
            except (aiohttp.ClientError, OSError) as error:
                said = repr(error)
            if said == TAKEN:
                self.asked += 1
            else:
                self.failed[said] += 1
            await asyncio.sleep(PAUSE_S)

    async def _ping(self) -> None:
        while True:
            with suppress(OSError):
                await self._stay()
            self.failed["the terminal's connection ended"] += 1
            await asyncio.sleep(PAUSE_S)

    async def _stay(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.site.ports["mqtt"])
        try:
            writer.write(login(TERMINAL, f"u-{TERMINAL}", f"pin-{TERMINAL}"[:16]))
            with suppress(asyncio.IncompleteReadError, TimeoutError):
                await reader.readexactly(4)
                while True:
                    writer.write(b"\xc0\0")
                    async with asyncio.timeout(TIMEOUT_S):
                        await reader.readexactly(2)
                    self.pinged += 1
                    await asyncio.sleep(PAUSE_S)
        finally:
            writer.close()


class Insiders:
    """Company A's users and terminals, on a platform with company B."""

    def __init__(self, platform: Platform, http: aiohttp.ClientSession) -> None:
        self._platform = platform
        self._company = Company(platform, "a")
        ports = {"http": platform.http, "mqtt": platform.mqtt}
        self._site = Site(ports, self._company.tokens, http)
        other = Company(platform, "b")
        other.terminal(TERMINAL)
        self.beside = Beside(Site(ports, other.tokens, http))
        self._uids = {kind: [self._terminal(kind, number) for number in range(AT_ONCE)] for kind in (PLAIN, SEALED)}

    def _terminal(self, kind: str, number: int) -> str:
        return self._company.terminal(f"{kind}-{number}", encryption=int(kind == SEALED))

    async def throw(self, bomb: Bomb, rounds: int) -> list[str]:
        """Prints a line for a bomb; what is wrong with it, in words."""
        whose = self._uids.get(bomb.who, [bomb.who] * AT_ONCE)
        self.beside.forget()
        memory, answers = Memory(self._platform.pid), []
        began_s = time.monotonic()
        for _ in range(rounds):
            answers += await asyncio.gather(*(self._answer(bomb, who) for who in whose))
        took_s = time.monotonic() - began_s
        most_mb = max(memory.stop(), memory.now())
        wrong = [f"answered {each}" for each in dict.fromkeys(bomb.wrong(answers))]
        if bomb.rejected:
            wrong += [each for uid in whose if (each := await asyncio.to_thread(self._unrejected, bomb, uid))]
        wrong += [f"beside it {each}" for each in self.beside.failed]
        wrong += [f"{most_mb:.0f} MB of memory"] * (most_mb > MEMORY_MB)
        said = ", ".join(f"{each}: {count}" for each, count in Counter(answers).most_common(2))
        beside = f"{self.beside.asked} | {self.beside.pinged}"
        print(f"| {bomb.who} | {bomb.name} | {said[:160]} | {took_s:.1f} | {most_mb:.0f} | {beside} |", flush=True)
        return [f"{bomb.name}: {each}" for each in wrong]

    async def _answer(self, bomb: Bomb, who: str) -> str:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await bomb.send(self._site, who)
        except TimeoutError:
            return "no answer"
        except (aiohttp.ClientError, OSError) as error:
            return f"broken off: {error!r}"[:100]

    def _unrejected(self, bomb: Bomb, uid: str) -> str:
        """Why a company does not read of its terminal's last report what it should; empty: it does."""
        last = self._company.call("get_reject_list", terminal_id=uid, page_size=1)["data"]
        return "" if last and bomb.rejected in str(last[0]) else f"rejected as {str(last)[-300:]}"


async def throw_all(platform: Platform, bombs: list[Bomb], rounds: int) -> list[str]:
    """All of them, one after the other, beside company B; what is wrong, in words."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        insiders = await asyncio.to_thread(Insiders, platform, http)
        working = asyncio.create_task(insiders.beside.run(), name="company B")
        wrong = [each for bomb in bombs for each in await insiders.throw(bomb, rounds)]
        if working.done():
            wrong.append(f"company B ended: {working.exception()!r}")
        working.cancel()
    is_alive, unready = await asyncio.to_thread(state_of, platform)
    return wrong + ["the platform has ended"] * (not is_alive) + [f"not ready: {part}" for part in unready]


def main() -> None:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="bombs whose name has this in it")
    options = parser.parse_args()
    bombs = [bomb for bomb in (*REQUESTS, *TERMINALS) if options.only in bomb.name]
    print("| who | bomb | answered, how often | s | most MB | others' requests | pings |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="insiders-") as name:
        platform = Platform(Path(name) / "data", env=limits()).login()
        try:
            wrong = uvloop.run(throw_all(platform, bombs, options.rounds))
            said = platform.log.read_text(errors="replace")
        finally:
            platform.kill()
    wrong += [line for line in said.splitlines() if "Traceback" in line or " ERROR " in line]
    if wrong:
        raise SystemExit("\n- ".join(["", *wrong]))
    print("\nall refused in words, within bounds, while others were answered")


if __name__ == "__main__":
    main()
