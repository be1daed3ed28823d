"""A remote broker, and the gate on the way to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bridge_rig import Gate

from running import Mosquitto


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path / "remote") as running:
        yield running


@pytest.fixture
def gate(remote: Mosquitto) -> Iterator[Gate]:
    with Gate(remote.port) as relay:
        yield relay
