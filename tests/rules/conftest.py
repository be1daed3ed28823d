"""A platform whose rules tell a receiver, on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rule_stand import Receiver, config_of, prepare

from running import Platform


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


@pytest.fixture
def platform(tmp_path: Path, receiver: Receiver, each_database: str) -> Iterator[Platform]:
    env = {"TERRAZZO_TIME__ZONE": "Asia/Kathmandu"}
    with Platform(tmp_path / "data", arguments=config_of(receiver, tmp_path), env=env) as started:
        prepare(started.login())
        yield started
