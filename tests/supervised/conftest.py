"""One platform for the tests of a file, whose tasks fail as they say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from planted_platform import PlantedPlatform, Receiver


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[PlantedPlatform]:
    with PlantedPlatform(tmp_path_factory.mktemp("planted"), receiver) as running:
        yield running
