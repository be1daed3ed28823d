"""The broker alone beside others: fan-in at QoS 1 without loss, and how long one message takes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from terrazzo_bench.loads.one_by_one import time_one_by_one
from terrazzo_bench.measures.benchmark import Benchmark, Run, Setting
from terrazzo_bench.programs import AMQTT, MOSQUITTO, named
from terrazzo_bench.result import OURS, Better, Result
from terrazzo_bench.servers import start_broker


@contextmanager
def _prepare_fan_in(setting: Setting) -> Iterator[Run]:
    names = [OURS, *(name for name in (MOSQUITTO, AMQTT) if name in setting.peers)]
    seconds = 0.5 if setting.is_short else 2.0

    def run(number: int) -> Iterator[Result]:
        for name in names:  # each broker and load afresh, alone
            server = start_broker(setting.processes, name, setting.folder / f"{name}-{number}")
            load = setting.processes.load("fan_in", str(server.port), folder=setting.folder)
            used = server.process.cpu_s()
            load.tell(str(seconds))
            found = json.loads(load.line())
            used, versions = server.process.cpu_s() - used, "" if name == OURS else named(name)
            load.end(at_once=True)
            server.process.end(at_once=True)
            rate = found["received"] / found["seconds"]
            yield Result("fan-in, QoS 1, lossless", "msg/s", rate, Better.HIGHER, name, versions)

    yield run


@contextmanager
def _prepare_latency(setting: Setting) -> Iterator[Run]:
    names = [OURS, *(name for name in (MOSQUITTO,) if name in setting.peers)]
    servers = [start_broker(setting.processes, name, setting.folder / name) for name in names]
    versions = ["" if name == OURS else named(name) for name in names]
    count = 300 if setting.is_short else 5_000

    def run(number: int) -> Iterator[Result]:
        for server, version in zip(servers, versions, strict=True):
            took_us = sorted(time_one_by_one(server.port, count))
            what = "publish to receive, QoS 1"
            p50, p99 = statistics.median(took_us), took_us[int(count * 0.99)]
            yield Result(f"{what}, p50", "us", p50, Better.LOWER, server.name, version)
            yield Result(f"{what}, p99", "us", p99, Better.LOWER, server.name, version)

    yield run


FAN_IN = Benchmark(
    name="fan-in",
    says="50 publishers to one subscriber at QoS 1, the brokers alone, nothing lost",
    peers=(MOSQUITTO, AMQTT),
    prepare=_prepare_fan_in,
    setup_s=1,
    run_s=11,
    short_s=7,
)
LATENCY = Benchmark(
    name="latency",
    says="one message at a time from one connection to another at QoS 1, the brokers alone",
    peers=(MOSQUITTO,),
    prepare=_prepare_latency,
    setup_s=2,
    run_s=3,
    short_s=3,
)
