"""An honest terminal and an honest user beside each flood of those who have proved nothing: they get in, within bounds.

How long they wait is the benchmark's to say: seconds are the machine's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from flooders import ATTACKS  # noqa: E402
from floods import BOUNDS, HOW, KINDS, Bounds, Most, Row, Site, Times, prepared, row  # noqa: E402

pytestmark = pytest.mark.timeout(500)  # a flood of thousands takes its time where others are at work, too

SECONDS = 1.5
TIMEOUT_S = 60.0  # of one step of theirs, on any machine
WITH_FEW_DESCRIPTORS = "q"


@pytest.fixture(scope="module")
def shared() -> Iterator[Site]:
    """One platform for all that need no other: what one flood leaves behind must not add up with the next one's."""
    with prepared("") as site:
        yield site


@pytest.mark.parametrize("name", [name for name in ATTACKS if name[0] != WITH_FEW_DESCRIPTORS])
def test_the_honest_ones_get_in_beside_a_flood(shared: Site, name: str) -> None:
    judge(row(shared, name, SECONDS, timeout_s=TIMEOUT_S))


def test_they_do_where_descriptors_are_few() -> None:
    (name,) = (name for name in ATTACKS if name[0] == WITH_FEW_DESCRIPTORS)
    with prepared(name) as site:
        judge(row(site, name, SECONDS, timeout_s=TIMEOUT_S))


def judge(found: Row) -> None:
    """Both got in, nothing of theirs failed, and the platform had no more than it may have."""
    assert found.counts["connected"] >= HOW[found.name[0]].ready, "it was a flood"
    assert found.beside.failed == {}
    assert [kind for kind in KINDS if not getattr(found.beside, kind)] == []
    assert found.exceeded == [], BOUNDS[found.name[0]].why
    assert found.most.memory_mb > 0
    assert found.most.descriptors > 0


def test_each_flood_has_its_bounds_and_they_are_told() -> None:
    assert {name[0] for name in ATTACKS} == set(HOW) == set(BOUNDS) == set("efghijklmnopqr")
    told = (BENCHMARKS / "README.md").read_text(encoding="utf-8").splitlines()
    assert [name for name in ATTACKS if f"| {name[2:]} | {BOUNDS[name[0]].cells()} |" not in told] == []


def test_what_is_beyond_its_bound_is_told() -> None:
    bounds = Bounds(100, 4, 50, "because")
    assert bounds.exceeded(Most(100, 4, 50, 0.5)) == []
    assert bounds.exceeded(Most(100.6, 3, 51, 0.5)) == ["101 of 100 MB", "51 of 50 descriptors"]
    alone = Times(terminal=[5.0], report=[40.0], user=[1.0], request=[1.0])
    beside = Times(terminal=[51.0], report=[79.0], user=[1.0])
    assert Row("e", beside, Most(1, 1, 1, 0), {}).slower(alone) == ["terminal", "request"], "never is too late"
