"""One platform for a module's contract tests, and the gateway's doors. It ends with them: an idle one costs too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contract_world import DOORS, Door, World, filled_platform


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with filled_platform(tmp_path_factory.mktemp("contract") / "data") as filled:
        yield filled


@pytest.fixture(scope="module", params=sorted(DOORS))
def door(world: World, request: pytest.FixtureRequest) -> Iterator[Door]:
    """The gateway over each transport."""
    opened = DOORS[request.param](world)
    yield opened
    opened.close()
