"""The stores that the shared suite runs against."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from store_houses import RocksHouse


@pytest.fixture(params=["rocksdb"])
def new_house(request, tmp_path_factory) -> Callable[[], object]:
    """Makes empty homes for a store, one for each call."""
    folder = tmp_path_factory.mktemp(request.param)
    numbers = count()
    return lambda: RocksHouse(folder / str(next(numbers)))


@pytest.fixture
async def house(new_house):
    return new_house()


@pytest.fixture
async def store(house):
    store = await house.open()
    yield store
    await store.close()
