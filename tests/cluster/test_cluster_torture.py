"""Some rounds of faults on several nodes under load; ``make torture-cluster`` has as many as wanted, of all kinds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cluster.cluster_faults import FAULTS, Fault
from cluster.torture import run_leg
from length import rounds
from postgresql_server import PostgreSQL

SHORT = ("kill leader", "stop front", "cut leader log")


def chosen() -> list[Fault]:
    """Three that have each part of the cluster take over or begin anew; on a longer run all there are."""
    if rounds(0, 1):
        return FAULTS
    return [each for name in SHORT for each in FAULTS if each.kind == name]


@pytest.mark.timeout(1_800)
async def test_faults_under_load_lose_and_double_nothing(tmp_path: Path, own_postgresql: PostgreSQL) -> None:
    verdict, done, crashes = await run_leg(tmp_path, own_postgresql, Random(5), chosen(), nodes=2, hold_s=(2.0, 4.0))
    assert len(done) == len(chosen())
    assert verdict.findings == []
    assert crashes == []
    assert verdict.acknowledged > 100 * len(done)
    assert verdict.delivered
