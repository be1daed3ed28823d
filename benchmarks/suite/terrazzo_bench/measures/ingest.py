"""Ingest with mapping: what is acknowledged is stored, in grid and mosaic; beside the usual stack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from terrazzo_bench.loads.publishers import Load
from terrazzo_bench.measures.benchmark import Benchmark, Run, Setting
from terrazzo_bench.processes import Failed, Started
from terrazzo_bench.programs import INFLUXDB, MOSQUITTO, PAHO, named
from terrazzo_bench.result import OURS, Better, Result
from terrazzo_bench.servers import Platform, Stack, start_platform

_STACK = "Mosquitto + paho + InfluxDB"
_NAME = "ingest with mapping"
_EVER = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "page_size": 1}


@contextmanager
def _prepare(setting: Setting) -> Iterator[Run]:
    connections, messages = (40, 250) if setting.is_short else (200, 1_500)
    uids = [f"bench-{number:04}" for number in range(connections)]
    platform = start_platform(setting.processes, setting.folder / "platform")
    platform.add_terminals(uids)
    objects = platform.map_in_pairs(uids)
    ours = Load(platform.mqtt, uids, messages)
    publishers = _publishers(setting, ours)
    stack = Stack(setting.processes, setting.folder / "stack") if {MOSQUITTO, INFLUXDB, PAHO} <= setting.peers else None
    theirs = replace(ours, port=stack.port if stack else 0, messages=messages // 3 // 25 * 25)
    their_publishers = _publishers(setting, theirs) if stack else []
    their_versions = named(MOSQUITTO, PAHO, INFLUXDB) if stack else ""

    def run(number: int) -> Iterator[Result]:
        # what is acknowledged is stored: counted below, after the last acknowledgement
        sent = connections * messages
        yield from _measured(OURS, "", sent, publishers, platform.process.cpu_s, lambda: None)
        _check_stored(platform, uids, objects, (number + 1) * messages)
        if stack is not None:
            total = connections * theirs.messages

            def stored() -> None:
                _wait_stored(stack, (number + 1) * total)

            yield from _measured(_STACK, their_versions, total, their_publishers, stack.cpu_s, stored)

    yield run


def _publishers(setting: Setting, load: Load) -> list[Started]:
    """Two processes, each with half of the connections."""
    parts = [replace(load, uids=load.uids[half::2], seed=half) for half in range(2)]
    return [setting.processes.load("publishers", part.to_json(), folder=setting.folder) for part in parts]


def _measured(
    peer: str,
    versions: str,
    messages: int,
    publishers: list[Started],
    cpu_s: Callable[[], float],
    wait: Callable[[], None],
) -> Iterator[Result]:
    """From the first message until all are acknowledged and ``wait`` has returned."""
    used, began = cpu_s(), time.perf_counter()
    for publisher in publishers:
        publisher.tell("go")
    for publisher in publishers:
        publisher.line()
    wait()
    spent_s, used = time.perf_counter() - began, cpu_s() - used
    yield Result(_NAME, "msg/s", messages / spent_s, Better.HIGHER, peer, versions)
    yield Result(_NAME, "us CPU/msg", used / messages * 1e6, Better.LOWER, peer, versions)


def _check_stored(platform: Platform, uids: list[str], objects: list[int], each: int) -> None:
    """Everything acknowledged is in the grid, and two terminals' worth of it in each object's mosaic.

    Raises:
        Failed: something is missing; figures of it would be worth nothing.
    """
    for uid, object_id in ((uids[0], objects[0]), (uids[-1], objects[-1])):
        grid = platform.gateway.call("get_grid_list", terminal_id=uid, topic=[], **_EVER)["total_records"]
        mosaic = platform.gateway.call("get_mosaic_list", object_id=object_id, keys="*", **_EVER)["total_records"]
        if (grid, mosaic) != (each, 2 * each):
            raise Failed(f"{uid}: acknowledged {each}, in the grid {grid}, in the mosaic of two terminals {mosaic}")


def _wait_stored(stack: Stack, messages: int) -> None:
    deadline = time.monotonic() + 120
    while stack.stored() < messages:
        if time.monotonic() > deadline:
            raise Failed(f"InfluxDB has {stack.stored()} of {messages} messages")
        time.sleep(0.05)


INGEST = Benchmark(
    name="ingest",
    says="QoS 1, 10 points, 20 variables an object; grid and mosaic stored and acknowledged",
    peers=(MOSQUITTO, PAHO, INFLUXDB),
    prepare=_prepare,
    setup_s=14,
    run_s=22,
    short_s=12,
)
