"""One platform for all contract tests, in which the examples have been performed up to the first deletion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contract_world import DOORS, Door, World
from example_run import EXAMPLES, Rehearsal

from running import Platform


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Platform(tmp_path_factory.mktemp("contract") / "data") as platform:
        rehearsal = Rehearsal(platform)
        for name, (request, answer) in EXAMPLES.items():
            if name.startswith("delete_"):
                break
            rehearsal.learn(answer, rehearsal.perform(request))
        yield World(platform, rehearsal)
        rehearsal.close()


@pytest.fixture(scope="session", params=sorted(DOORS))
def door(world: World, request: pytest.FixtureRequest) -> Iterator[Door]:
    """The gateway over each transport."""
    opened = DOORS[request.param](world)
    yield opened
    opened.close()
