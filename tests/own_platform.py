"""The platform in the test's own process, assembled as ``terrazzo serve`` does it: all parts, and at hand.

What differs from a platform of users is given as configuration, or as a port where there is no key. Other modules of
the tests have ``Platform`` and ``Ports`` from here.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from migrated import PASSWORD, first_start, no_records, seed
from terrazzo.config.bridge import BridgeSection
from terrazzo.config.sections import Config
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import Tasks
from terrazzo.runtime.serve import ListenAddresses, Platform, Ports, new_caller, new_mailer, open_store

__all__ = [
    "PASSWORD",
    "ListenAddresses",
    "Platform",
    "Ports",
    "config_in",
    "new_caller",
    "new_mailer",
    "open_store",
    "own_platform",
    "store_through",
]

_STOP_S = 120.0
_DEFAULTS: dict[str, dict[str, Any]] = {
    "http": {"port": 0},
    "websocket": {"port": 0},
    "tcp": {"port": 0, "enabled": True},
    "mqtt": {"port": 0, "websocket_port": None},
    "admin": {"password": PASSWORD},
}


def config_in(folder: Path, *, bridges: Sequence[BridgeSection] = (), **sections: Mapping[str, Any]) -> Config:
    """A configuration by its sections; times may be shorter than a file could say. Listens on any free ports."""
    config = Config().with_data_dir(folder)
    given = {name: {**_DEFAULTS.get(name, {}), **sections.get(name, {})} for name in {*_DEFAULTS, *sections}}
    changed = {name: msgspec.structs.replace(getattr(config, name), **keys) for name, keys in given.items()}
    return msgspec.structs.replace(config, bridge=tuple(bridges), **changed)


def store_through(wrap: Callable[[TimeSeriesStore], Any]) -> Callable[[Config, Tasks], Awaitable[TimeSeriesStore]]:
    """For the port ``open_store``: the store of the configuration, behind whatever a test puts before it."""

    async def open_wrapped(config: Config, tasks: Tasks) -> TimeSeriesStore:
        wrapped: TimeSeriesStore = wrap(await open_store(config, tasks))
        return wrapped

    return open_wrapped


@asynccontextmanager
async def own_platform(
    folder: Path, *, ports: Ports | None = None, bridges: Sequence[BridgeSection] = (), **sections: Mapping[str, Any]
) -> AsyncIterator[tuple[Platform, ListenAddresses]]:
    """A started platform on a data folder and where it listens; a second one on the same folder is a restart."""
    config = config_in(folder, bridges=bridges, **sections)
    seed(folder, first_start if config.admin.password == PASSWORD else no_records)
    platform = Platform(config, ports)
    addresses = await platform.start()
    try:
        yield platform, addresses
        assert not platform.failed.is_set(), "a part of the platform could not go on"
    finally:
        await stopped(platform)


async def stopped(platform: Platform) -> None:
    """Stops it. One that doesn't stop fails the test, and says what it waits for, rather than being waited for."""
    stopping = asyncio.ensure_future(platform.stop())
    done, _ = await asyncio.wait({stopping}, timeout=_STOP_S)
    if not done:
        told = io.StringIO()
        for task in asyncio.all_tasks():
            task.print_stack(file=told)
        raise AssertionError(f"the platform has not stopped within {_STOP_S:.0f} s:\n{told.getvalue()}")
    stopping.result()
