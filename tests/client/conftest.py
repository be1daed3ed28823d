"""A served platform and a terminal's worth of records, one process for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from running import Platform


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("client") / "data") as running:
        running.login()
        config = running.add_config()
        for number in range(5):
            running.add_terminal(f"t{number}", config)
        yield running
