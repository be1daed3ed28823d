"""A Mosquitto and an observer on it, for the tests of simulators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mosquitto_peer
import pytest
from mosquitto_peer import Mosquitto, Observer


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto_peer.mosquitto(tmp_path) as running:
        yield running


@pytest.fixture
def watching(mosquitto: Mosquitto) -> Iterator[Observer]:
    with mosquitto_peer.observer(mosquitto.port) as observer:
        yield observer
