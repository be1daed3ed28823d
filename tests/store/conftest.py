"""The stores that the shared suite runs against."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from store_locations import InfluxLocation, RocksLocation, SealedLocation


@pytest.fixture
def new_influx_location(influxd, tmp_path_factory) -> Callable[[], InfluxLocation]:
    """Makes empty databases with a spool, one for each call."""
    folder = tmp_path_factory.mktemp("spool")
    numbers = count()

    def new() -> InfluxLocation:
        number = next(numbers)
        return InfluxLocation(influxd.url, f"{folder.name}-{number}", folder / str(number))

    return new


@pytest.fixture(params=["rocksdb", "sealed", "influxdb"])
def new_location(request, tmp_path_factory) -> Callable[[], object]:
    """Makes empty homes for a store, one for each call."""
    if request.param == "influxdb":
        return request.getfixturevalue("new_influx_location")
    folder = tmp_path_factory.mktemp("rocksdb")
    numbers = count()
    kind = SealedLocation if request.param == "sealed" else RocksLocation
    return lambda: kind(folder / str(next(numbers)))


@pytest.fixture
async def location(new_location):
    return new_location()


@pytest.fixture
async def store(location):
    store = await location.open()
    yield store
    await store.close()
