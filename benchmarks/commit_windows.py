"""The ingest with few terminals and a sync of a given length: what windows of unacknowledged messages come to.

``python benchmarks/commit_windows.py [--sync 1.5 5] [--write 4 0]`` runs the ingest in one process on a store that
takes so many milliseconds to sync and so many microseconds to write a message; 0: what writing a group while the one
before it syncs could bring at most. Terminals send blocks of 25 (or their window) again half a millisecond after they
were acknowledged.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from mapping_parts import Valve
from publishers import BLOCK

from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import make_tag
from terrazzo.ports.store import Record
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_broker.hooks import Inbound

SIZES = ((1, 20), (1, 200), (10, 20), (10, 200), (200, 20))
BODY = b'{"P0":20.1,"P1":20.2,"P2":20.3,"P3":20.4,"P4":20.5,"P5":20.6,"P6":20.7,"P7":20.8,"P8":20.9,"P9":21.0}'
ROUND_TRIP_S = 0.0005
WARM_S = 0.3


class SlowStore:
    """Takes as long as it is told."""

    def __init__(self, sync_s: float, write_s: float) -> None:
        self._sync_s = sync_s
        self._write_s = write_s
        self.commits = 0

    async def append(self, records: Sequence[Record], *, notes: Mapping[str, bytes] | None = None) -> None:
        self.commits += 1
        await asyncio.sleep(self._sync_s + len(records) * self._write_s)

    async def series(self, prefix: str) -> list[str]:
        return []


class Block:
    """Messages of a terminal that are sent again when they are acknowledged."""

    arrived_us = 0

    def __init__(self, load: Load, client: Any, messages: Sequence[Inbound]) -> None:
        self.client = client
        self.messages = messages
        self._load = load

    def settle(self, refusals: object = None) -> None:
        assert not refusals
        self._load.acknowledged += len(self.messages)
        asyncio.get_running_loop().call_later(ROUND_TRIP_S, self.send)

    def send(self) -> None:
        """Hands itself to the ingest, unless it is over."""
        if not self._load.is_over:
            self.arrived_us = time.time_ns() // 1000
            self._load.pipeline.take(self)  # type: ignore[arg-type]

    def hold(self) -> None: ...

    def release(self) -> None: ...


class Load:
    """Some terminals, each with a window."""

    def __init__(self, pipeline: IngestPipeline, terminals: int, window: int) -> None:
        self.pipeline = pipeline
        self.acknowledged = 0
        self.is_over = False
        size = min(BLOCK, window)
        self._blocks = [
            Block(
                self,
                SimpleNamespace(client_id=f"t{number}", protocol=5, owner="1"),
                [Inbound(_tag(number), BODY)] * size,
            )
            for number in range(terminals)
            for _ in range(window // size)
        ]

    def begin(self) -> None:
        for block in self._blocks:
            block.send()


def _tag(number: int) -> Any:
    uid = f"t{number}"
    terminal = Terminal(id=number, uid=uid, name=uid, company_id=1, type="Other", mode="pwd", username="u", pin="p")
    return make_tag(ReportTopic(f"g/{uid}/r", terminal, "r"), trace=Trace(), seal=None)


async def measure(
    terminals: int, window: int, *, sync_ms: float, write_us: float, seconds: float
) -> tuple[float, float]:
    """Messages a second, and messages a commit."""
    store = SlowStore(sync_ms / 1e3, write_us / 1e6)
    pipeline = IngestPipeline(store, Valve(), tasks=Supervisor(on_stop=sys.exit))  # type: ignore[arg-type]
    pipeline.start()
    load = Load(pipeline, terminals, window)
    load.begin()
    await asyncio.sleep(WARM_S)
    acknowledged, commits, began = load.acknowledged, store.commits, time.perf_counter()
    await asyncio.sleep(seconds)
    count, spent_s = load.acknowledged - acknowledged, time.perf_counter() - began
    load.is_over = True
    await pipeline.stop()
    return count / spent_s, count / max(1, store.commits - commits)


def main() -> None:
    """Reads the arguments, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sync", type=float, nargs="+", default=[1.5, 5.0], help="milliseconds")
    parser.add_argument("--write", type=float, nargs="+", default=[4.0, 0.0], help="microseconds a message")
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    print("| sync, ms | write, us a message | terminals | window | messages/s | messages a commit |")
    print("|---:|---:|---:|---:|---:|---:|", flush=True)
    for sync_ms in arguments.sync:
        for terminals, window in SIZES:
            for write_us in arguments.write:
                rate, each = asyncio.run(
                    measure(terminals, window, sync_ms=sync_ms, write_us=write_us, seconds=arguments.seconds)
                )
                print(f"| {sync_ms} | {write_us} | {terminals} | {window} | {rate:,.0f} | {each:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
