"""What the platform takes when nothing happens: until it is ready, memory, CPU, and a connection's memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from terrazzo_bench.measures.benchmark import Benchmark, Run, Setting
from terrazzo_bench.programs import MOSQUITTO, named
from terrazzo_bench.result import OURS, Better, Result
from terrazzo_bench.servers import start_broker, start_platform

_SETTLED_S = 1.0


@contextmanager
def _prepare(setting: Setting) -> Iterator[Run]:
    names = [OURS, *(name for name in (MOSQUITTO,) if name in setting.peers)]
    versions = {name: "" if name == OURS else named(name) for name in names}
    idle_s, connections = (1.0, 500) if setting.is_short else (4.0, 5_000)

    def run(number: int) -> Iterator[Result]:
        yield from _platform(setting, number, idle_s)
        for name in names:
            server = start_broker(setting.processes, name, setting.folder / f"{name}-{number}")
            before = server.process.resident_bytes()
            load = setting.processes.load("idle", str(server.port), str(connections), folder=setting.folder)
            time.sleep(_SETTLED_S)
            grown = server.process.resident_bytes() - before
            load.end(at_once=True)
            server.process.end(at_once=True)
            each_kb = max(grown, 0) / connections / 1e3
            yield Result("footprint: idle connection", "KB", each_kb, Better.LOWER, name, versions[name])

    yield run


def _platform(setting: Setting, number: int, idle_s: float) -> Iterator[Result]:
    """Its second start: the first makes keys and the database, which no restart does."""
    folder = setting.folder / f"platform-{number}"
    first = start_platform(setting.processes, folder)
    yield Result("footprint: ready, first start", "s", first.ready_s, Better.LOWER)
    first.gateway.close()
    first.process.end()
    again = start_platform(setting.processes, folder)
    yield Result("footprint: ready", "s", again.ready_s, Better.LOWER)
    time.sleep(_SETTLED_S)
    used, began = again.process.cpu_s(), time.perf_counter()
    time.sleep(idle_s)
    share = (again.process.cpu_s() - used) / (time.perf_counter() - began)
    yield Result("footprint: idle CPU", "% of a core", share * 100, Better.LOWER)
    yield Result("footprint: empty", "MB", again.process.resident_bytes() / 1e6, Better.LOWER)
    again.gateway.close()
    again.process.end()


FOOTPRINT = Benchmark(
    name="footprint",
    says="ready after a restart, memory and CPU of an empty platform, memory of an idle connection",
    peers=(MOSQUITTO,),
    prepare=_prepare,
    setup_s=0,
    run_s=22,
    short_s=17,
)
