"""Brokers on one folder, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from commit_rig import Clock, Rig

from terrazzo_broker.standalone import OpenHooks


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def start(tmp_path: Path, clock: Clock) -> AsyncIterator[Callable[..., Awaitable[Rig]]]:
    """Starts a broker on the same folder; the one before must have been closed."""
    rigs: list[Rig] = []

    async def _start(hooks: OpenHooks | None = None, **limits: Any) -> Rig:
        rig = Rig(tmp_path / "data", clock, hooks or OpenHooks(anonymous=True), **limits)
        rigs.append(rig)
        rig.port = await rig.broker.listen_tcp("127.0.0.1", 0)
        return rig

    yield _start
    for rig in rigs:
        await rig.close()
