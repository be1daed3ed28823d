"""Fixtures for every test."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from influx_server import InfluxServer
from postgresql_server import PostgreSQL, metadata_in, running_postgresql
from shared_statements import share_statements

settings.register_profile("any load", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("any load")
share_statements()

gc.set_threshold(20_000, 10, 10)  # tests leave a large heap, which each collection walks

pytest_plugins = ["by_file", "hanging", "suites", "watched_loop"]


def pytest_collection_finish() -> None:
    """Takes modules and tests, which live to the end, out of garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, object]:
    """What a log line or a comparison shows of foreign text may hold unpaired surrogates, which xdist can't carry."""
    return encodable((yield))


def encodable(value: object) -> object:
    """A report's data, all of its text such that UTF-8 can tell it."""
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {encodable(key): encodable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(map(encodable, value))
        case _:
            return value


@pytest.fixture(scope="session")
def influxd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InfluxServer]:
    """An InfluxDB of this run's own: tests share it, each in databases of its own."""
    server = InfluxServer(tmp_path_factory.mktemp("influxd"))
    server.start()
    yield server
    server.kill()  # it would write down for seconds what nobody reads again


@pytest.fixture
def own_influxd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InfluxServer]:
    """An InfluxDB of one test's own, which may stop and start it; it runs."""
    with InfluxServer(tmp_path_factory.mktemp("own-influxd")) as server:
        yield server


@pytest.fixture(params=["rocksdb", "influxdb"])
def influx(request: pytest.FixtureRequest) -> str:
    """For tests on each kind of store: the address of an InfluxDB, empty for RocksDB."""
    if request.param == "rocksdb":
        return ""
    server: InfluxServer = request.getfixturevalue("influxd")
    return server.url


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server of this run's own."""
    with running_postgresql() as server:
        yield server


@pytest.fixture
def own_postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server of one test's own, which may stop and start it."""
    with running_postgresql() as server:
        yield server


def _on_each(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield "sqlite"
        return
    with metadata_in(request.getfixturevalue("postgresql")):
        yield "postgresql"


_KINDS = ["sqlite", "postgresql"]

each_database = pytest.fixture(_on_each, params=_KINDS, name="each_database")
"""Has platforms, and databases that are opened in the test, on each kind of database in turn; its name."""

each_database_of_module = pytest.fixture(_on_each, scope="module", params=_KINDS, name="each_database_of_module")
"""The same for what all tests of a module share; its other tests ask for ``each_database``, or open none."""
