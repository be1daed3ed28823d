"""One NATS server for all tests here; each has a platform's name of its own in it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from nats_servers import NatsServer, running_nats
from terrazzo_adapters.jetstream import Connection, JetStreamSettings

_numbers = itertools.count()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    folder: Path = tmp_path_factory.mktemp("nats")
    with running_nats(folder) as (server,):
        yield server


@pytest.fixture
def stream_settings(nats_server: NatsServer) -> JetStreamSettings:
    return JetStreamSettings(
        url=nats_server.url, name=f"t{next(_numbers)}", replicas=1, most_bytes=8 << 20, most_in_bytes=8 << 20
    )


@pytest.fixture
async def connection(stream_settings: JetStreamSettings) -> AsyncIterator[Connection]:
    opened = Connection(stream_settings)
    await opened.open()
    yield opened
    await opened.close()
