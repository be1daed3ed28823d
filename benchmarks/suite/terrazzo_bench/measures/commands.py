"""Commands: from the gateway's request until the journaled command is at the terminal."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from terrazzo_bench.loads.commander import Commander
from terrazzo_bench.measures.benchmark import Benchmark, Run, Setting
from terrazzo_bench.result import Better, Result
from terrazzo_bench.servers import start_platform

_CLIENTS = 32


@contextmanager
def _prepare(setting: Setting) -> Iterator[Run]:
    platform = start_platform(setting.processes, setting.folder / "platform")
    uids = [f"bench-{number:04}" for number in range(_CLIENTS)]
    platform.add_terminals(uids)
    commander = Commander(platform.http, platform.mqtt, platform.gateway.token, uids)
    load = setting.processes.load("commander", commander.to_json(), folder=setting.folder)
    seconds = 0.7 if setting.is_short else 4.0

    def run(number: int) -> Iterator[Result]:
        load.tell(f"1 {seconds}")
        alone = sorted(json.loads(load.line())["took_ms"])
        yield Result("command to terminal, p50", "ms", statistics.median(alone), Better.LOWER)
        yield Result("command to terminal, p99", "ms", alone[int(len(alone) * 0.99)], Better.LOWER)
        used = platform.process.cpu_s()
        load.tell(f"{_CLIENTS} {seconds}")
        many = json.loads(load.line())
        used = platform.process.cpu_s() - used
        name = f"commands, {_CLIENTS} clients"
        yield Result(name, "commands/s", many["arrived"] / many["seconds"], Better.HIGHER)
        yield Result(name, "us CPU/command", used / many["arrived"] * 1e6, Better.LOWER)

    yield run


COMMANDS = Benchmark(
    name="commands",
    says="from the gateway to the terminal, journaled: one client, and 32 to a terminal each",
    peers=(),
    prepare=_prepare,
    setup_s=5,
    run_s=8.5,
    short_s=7,
)
