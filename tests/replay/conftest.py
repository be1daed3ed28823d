"""Stands, each on a folder of its own, stopped at the end; on either store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any

import pytest
from replay_stand import PLAIN, Stand

NewStand = Callable[[list[Any]], Awaitable[Stand]]


@pytest.fixture
async def new_stand(tmp_path_factory: pytest.TempPathFactory, influx: str) -> AsyncIterator[NewStand]:
    """Makes stands under a mapping."""
    folder, numbers, made = tmp_path_factory.mktemp, count(), []

    async def new(script: list[Any]) -> Stand:
        stand = Stand(folder(f"stand-{next(numbers)}"), influx)
        made.append(await stand.start(script))
        return stand

    yield new
    for stand in made:
        await stand.stop()


@pytest.fixture
async def stand(new_stand: NewStand) -> Stand:
    """A stand under the plain mapping."""
    return await new_stand(PLAIN)
