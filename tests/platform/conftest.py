"""A served platform, one process for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from running import Platform


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("platform") / "data") as running:
        running.login()
        yield running


@pytest.fixture(scope="module")
def config_uid(platform: Platform) -> str:
    return platform.add_config()
