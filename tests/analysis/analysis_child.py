"""A process that stores records, many of them late, computes statistics all the time, and says how far the clock is.

``python analysis_child.py FOLDER OBJECT NOW_US [INFLUX]``
"""

from __future__ import annotations

import asyncio
import random
import sys
from datetime import UTC
from pathlib import Path

from analysis_stand import HOUR_US, AnalysisStand


async def run(folder: Path, object_id: int, now_us: int, influx: str) -> None:
    stand = AnalysisStand(folder, UTC, influx)
    stand.now_us = now_us
    await stand.open()
    pick = random.Random(now_us)
    print(now_us, flush=True)

    async def report() -> None:
        for _ in range(3):
            times = [stand.now_us - pick.randrange(1, 30 * HOUR_US) // 1_000_000 * 1_000_000 for _ in range(5)]
            await stand.report(object_id, [(time_us, {"A": pick.randrange(3)}) for time_us in sorted(times)])

    while True:
        stand.now_us += HOUR_US // 2
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(report())
            tasks.create_task(stand.analysis.work())
        print(stand.now_us, flush=True)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), "".join(sys.argv[4:])))
