"""The stores that the shared suite runs against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from store_houses import InfluxHouse, RocksHouse

from influx_server import InfluxServer


@pytest.fixture
def own_influxd(tmp_path_factory) -> Iterator[InfluxServer]:
    """A server that one test may stop and start; it runs."""
    server = InfluxServer(tmp_path_factory.mktemp("own-influxd"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def new_influx_house(influxd, tmp_path_factory) -> Callable[[], InfluxHouse]:
    """Makes empty databases with a spool, one for each call."""
    folder = tmp_path_factory.mktemp("spool")
    numbers = count()

    def new() -> InfluxHouse:
        number = next(numbers)
        return InfluxHouse(influxd.url, f"{folder.name}-{number}", folder / str(number))

    return new


@pytest.fixture(params=["rocksdb", "influxdb"])
def new_house(request, tmp_path_factory) -> Callable[[], object]:
    """Makes empty homes for a store, one for each call."""
    if request.param == "influxdb":
        return request.getfixturevalue("new_influx_house")
    folder = tmp_path_factory.mktemp("rocksdb")
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
