"""The platform as a process: its event loop, its signals, its exit status."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from terrazzo.access.tokens import load_jwt
from terrazzo.config.sections import Config
from terrazzo.errors import Unavailable
from terrazzo.ports.store import StoreUnavailable
from terrazzo.runtime.serve import ListenAddresses, Platform
from terrazzo.runtime.service_notify import ServiceManager
from terrazzo.short_turns import ComputingThreads

_log = logging.getLogger(__name__)

_GC_AFTER = (30_000, 0, 1_500)
"""Objects between two collections: a batch's thousands of records end by themselves. What is looked at in one go, which
holds the loop, is what has come since the last or the last two; all that there is once in 90,000,000."""

RELOADED_KEYS = ("http.tls_cert", "http.tls_key", "mqtt.tls_cert", "mqtt.tls_key", "mqtt.tls_client_ca")
"""Keys that name files whose contents a platform that runs takes anew; docs/configuration.md lists them."""

_RELOADED = (
    "SIGHUP: the files of %s were read again, and those that can't be used left as they were; the configuration itself"
    " was not: each changed key needs a restart"
)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's event loop where it is installed (twice the packets a second), else asyncio's."""
    loop: asyncio.AbstractEventLoop
    try:
        import uvloop
    except ImportError:
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    loop.set_default_executor(ComputingThreads(thread_name_prefix="asyncio"))
    return loop


async def run(config: Config, *, started: Callable[[Platform, ListenAddresses], Awaitable[None]]) -> int:
    """Starts the platform, awaits ``started``, serves until SIGTERM, SIGINT or a fatal failure; the exit status.

    One of several nodes (``stream.kind``) stands by until it has the lease.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    manager = ServiceManager(os.environ)
    if config.stream.kind == "none":
        return await _serve(Platform(config), manager, (stopping,), started)
    from terrazzo.runtime.node import Node  # of several, which most are not

    node = Node(config)
    try:
        manager.watch(node.tasks)
        manager.tell_ready(node.say())
        print(f"Terrazzo stands by: node {config.cluster.node} of the cluster {config.cluster.name}.", flush=True)
        ports = await node.stand_by(stopping)
        await manager.stop()
        if ports is None:
            return 1 if node.failed.is_set() else 0
        ends = (stopping, node.failed, node.handed_over)
        status = await _serve(Platform(config, ports), manager, ends, started)
        return 1 if node.failed.is_set() else status
    except (Unavailable, StoreUnavailable) as error:
        if not node.failed.is_set():
            raise
        _log.warning("not all was written at the end, as another node leads: %s", error)
        return 1
    finally:
        await node.close()


async def run_front(config: Config) -> int:
    """Serves terminals as one of several fronts until SIGTERM, SIGINT or a fatal failure; the exit status."""
    from terrazzo.runtime.fronts.front import Front  # which most processes are not

    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    front, manager = Front(config), ServiceManager(os.environ)
    loop.add_signal_handler(signal.SIGHUP, front.reload_certificates)
    manager.watch(front.tasks)
    starting = asyncio.create_task(front.start(), name="start of the front")
    try:
        await _first_of(stopping, front.failed, also=starting)
        if starting.done():
            said = f"terminals connect to {' '.join(starting.result())}"
            print(f"Terrazzo is ready: front {config.cluster.node} of {config.cluster.name}; {said}", flush=True)
            manager.tell_ready(said)
            tune_collector()
            await _first_of(stopping, front.failed)
    finally:
        starting.cancel()
        await asyncio.wait({starting})
        manager.tell_stopping()
        await manager.stop()
        await front.stop()
    return 1 if front.failed.is_set() else 0


async def _serve(
    platform: Platform,
    manager: ServiceManager,
    ends: Sequence[asyncio.Event],
    started: Callable[[Platform, ListenAddresses], Awaitable[None]],
) -> int:
    loop = asyncio.get_running_loop()
    addresses = await platform.start()
    tune_collector()
    platform.watch.excuse()

    def reload() -> None:
        manager.tell_reloading()
        platform.reload_certificates()
        _log.warning(_RELOADED, ", ".join(RELOADED_KEYS))
        manager.tell_ready(_said(addresses))

    loop.add_signal_handler(signal.SIGHUP, reload)
    manager.watch(platform.tasks)
    try:
        await started(platform, addresses)
        manager.tell_ready(_said(addresses))
        loading = loop.run_in_executor(None, load_jwt)  # noqa: F841 - for the first login
        await _first_of(*ends, platform.failed)
    finally:
        manager.tell_stopping()
        await manager.stop()
        await platform.stop()
    return 1 if platform.failed.is_set() else 0


def _said(addresses: ListenAddresses) -> str:
    return f"Serving {addresses.http} and {' '.join(addresses.mqtt)}"


def tune_collector() -> None:
    """Takes what exists by now out of garbage collection, as it lives as long as the process; then collects as
    ``_GC_AFTER`` says.

    What a start leaves in cycles, 157 objects, stays: to look for it takes 0.13 s beside 100,000 terminals.
    """
    gc.freeze()
    gc.set_threshold(*_GC_AFTER)


async def _first_of(*events: asyncio.Event, also: asyncio.Task[Any] | None = None) -> None:
    tasks = [asyncio.create_task(event.wait(), name="stop signal") for event in events]
    others = () if also is None else (also,)
    await asyncio.wait((*tasks, *others), return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
