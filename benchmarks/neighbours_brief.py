"""All attacks of a company from inside, each for a moment on one platform: does anything give way at once?

``python benchmarks/neighbours_brief.py [--seconds S] [--share X] [--only 3,7]`` starts a platform. Company A begins
each attack of ``attacks/table.py`` in turn, prepared to such a share of what ``neighbours.py`` prepares, while company
B works all the time (``bystanders.py``). Prints a line for each: its seconds of preparation, the most processor time of
the platform's loop between two looks so far, and the resident memory before and at the most. Exits 1, naming the
attacks, where the loop had more than 100 ms, memory grew by more than 235 MB, something of B's was refused, lost or
late, or an attack came to nothing. How long B waits is ``neighbours.py``'s to say: seconds are the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import aiohttp
import psutil
import uvloop
from attacks.attack import Attack
from attacks.attacker import Attacker, Target
from attacks.company import Company
from attacks.table import ATTACKS
from bystander_results import Span
from bystanders import Bystander
from neighbours import LOOP_CPU_MS, MEMORY_MB, Memory, at, loop_of, started, state_of

from running import Platform

PATIENCE_S = 20.0  # until an attack has come to something
GROWN_MB = MEMORY_MB - 165  # by one attack, as on a platform on which nothing else was done before
LATE_S = 30.0  # of B's results, after all that A has left to do
BRIDGES = 13  # its configuration is of all
AFTER_ALL = 26  # what it starts goes on


class Brief:
    """The platform with both companies, and what is found wrong."""

    def __init__(self, platform: Platform, ports: dict[str, int], *, seconds: float, share: float) -> None:
        self.wrong: list[str] = []
        self._platform = platform
        self._ports = ports
        self._seconds = seconds
        self._share = share
        self._attacker = Company(platform, "a")
        self._bystander = Bystander(Company(platform, "b"), logs_in=True)
        self._cpu_ms = 0.0

    async def run(self, numbers: list[int]) -> None:
        """All of these, while B works."""
        span = Span()
        working = asyncio.create_task(self._bystander.run(span), name="bystander")
        for number in sorted(numbers, key=lambda each: (each == AFTER_ALL, each)):
            await self._one(ATTACKS[number])
        span.end()
        await working
        self._look_at_others()

    async def _one(self, attack: Attack) -> None:
        attack.share = self._share
        began_s, memory = time.monotonic(), Memory(self._platform.pid)
        before_mb = memory.now()
        failed = self._bystander.waits.failed.total()
        facts = await asyncio.to_thread(attack.prepare, self._attacker)
        prepared_s = time.monotonic() - began_s
        counts = await self._attack(attack, Target(attack.number, self._ports, self._attacker.tokens, facts))
        cpu_ms, _ = await asyncio.to_thread(loop_of, self._platform)
        memory_mb = await asyncio.to_thread(memory.stop)
        found = [f"the loop had {cpu_ms:.0f} ms of processor time"] * (cpu_ms > max(LOOP_CPU_MS, self._cpu_ms))
        found += [f"{before_mb:.0f} MB grew to {memory_mb:.0f}"] * (memory_mb > before_mb + GROWN_MB)
        found += ["something of B's failed"] * (self._bystander.waits.failed.total() > failed)
        found += ["nothing was done"] * (not counts)
        self._cpu_ms = max(self._cpu_ms, cpu_ms)
        self.wrong += [f"{attack.number}: {each}" for each in found]
        figures = f"{prepared_s:5.1f} s {cpu_ms:5.0f} ms {before_mb:5.0f} → {memory_mb:.0f} MB"
        print(f"{attack.number:2} {figures}  {attack.name}: {dict(counts)}", flush=True)

    async def _attack(self, attack: Attack, target: Target) -> dict[str, int]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            attacker = Attacker(target, http)
            attacking = asyncio.create_task(attacker.run(attack), name=attack.name)
            end_s, latest_s = time.monotonic() + self._seconds, time.monotonic() + PATIENCE_S
            while time.monotonic() < (end_s if attacker.counts else latest_s) and not attacking.done():
                await asyncio.wait([attacking], timeout=0.02)
            attacking.cancel()
            await asyncio.wait([attacking], timeout=PATIENCE_S)
            if not attacking.cancelled():
                self.wrong.append(f"{attack.number}: {attacking!r}")
        return attacker.counts

    def _look_at_others(self) -> None:
        waits = self._bystander.waits
        self.wrong += [f"B: {reason}: {count}" for reason, count in waits.failed.items()]
        self.wrong += [f"B: {waits.lost_frames} frames of {waits.reports} lost"] * (waits.lost_frames > 0)
        self.wrong += [f"B: {waits.answered} of {waits.commands} commands answered"] * (waits.answered < waits.commands)
        for name in ("puback", "ping", "page", "login", "commands"):
            self.wrong += [f"B: no {name}"] * (not getattr(waits, name))
        late = {"statistics": waits.statistics_s, "balance": waits.balance_s}
        self.wrong += [f"B: {name} {at(ages, 1.0):.0f} s late" for name, ages in late.items() if at(ages, 1.0) > LATE_S]
        is_alive, unready = state_of(self._platform)
        self.wrong += ["the platform has ended"] * (not is_alive) + [f"not ready: {part}" for part in unready]


def main() -> None:
    """Exits 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--only", default="", help="numbers of attacks, with commas")
    options = parser.parse_args()
    numbers = [int(number) for number in options.only.split(",") if number] or list(ATTACKS)
    with started(ATTACKS[BRIDGES]) as (platform, ports):
        brief = Brief(platform, ports, seconds=options.seconds, share=options.share)
        uvloop.run(brief.run(numbers))
        cpu = psutil.Process(platform.pid).cpu_times()
        print(f"{cpu.user + cpu.system:.0f} s of processor time")
        held = [line for line in platform.log.read_text(errors="replace").splitlines() if "event loop was held" in line]
    for line in held:
        print(line[:600])
    if brief.wrong:
        raise SystemExit("\n".join(["WRONG:", *brief.wrong]))
    print("nothing was wrong")


if __name__ == "__main__":
    main()
