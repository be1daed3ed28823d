"""What a flood of refused logins costs the platform's own parts, without sockets: CPU for each, and memory.

``python benchmarks/refused_logins.py [--logins N]``. Each login comes from an address and under a client id that was
not there before (one in four under a terminal's uid), and with it a failed TLS handshake. Prints microseconds of CPU
for each, how many that is a second on one core, and how memory grew from the first 50,000 to the end.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from login_flood import LoginFlood

_FIRST = 50_000  # by then no table grows any more


def resident_kib() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4


async def measure(logins: int) -> None:
    """Runs the flood and prints what it cost."""
    flood = LoginFlood()
    await flood.go_on(0, _FIRST)
    before_kib, began = resident_kib(), time.thread_time()
    await flood.go_on(_FIRST, logins)
    each_us = (time.thread_time() - began) / logins * 1_000_000
    grown_kib = resident_kib() - before_kib
    entries = ", ".join(f"{name} {size:,}" for name, size in flood.sizes())
    print(f"{each_us:.1f} us each, {1_000_000 / each_us:,.0f} a second on one core; {grown_kib:+,} KiB ({entries})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logins", type=int, default=500_000)
    asyncio.run(measure(parser.parse_args().logins))
