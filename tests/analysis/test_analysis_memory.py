"""Scripts of analyses count as memory of their company, as long as they are there."""

from __future__ import annotations

import tracemalloc
from datetime import UTC
from typing import Any

import pytest

from terrazzo.analysis.known_progress import KnownProgress
from terrazzo.analysis.progress import ScriptProgress
from terrazzo.analysis.scripts import ScriptCatalogue, ScriptKind
from terrazzo.loop_pauses import at_once

BASE = {"uid": "u", "is_active": 1, "is_available": 1}


def statistics(number: int) -> dict[str, Any]:
    return {"script": [[f"n{n} of {number}", "avg", f"CODE{n}"] for n in range(200)]}


def calculation(number: int) -> dict[str, Any]:
    return {"script": [[f"n{n}", f"A * {number}.{n} + " + "B * 2.5 + " * 20 + "1"] for n in range(40)]}


def balance(number: int) -> dict[str, Any]:
    return {"target_code": f"T{number}", "input_codes": ["A", "B"], "window": 3_600}


@pytest.mark.parametrize(
    ("kind", "make", "objects"),
    [
        (ScriptKind.STATISTICS, statistics, 1),
        (ScriptKind.STATISTICS, statistics, 300),
        (ScriptKind.CALCULATE, calculation, 1),
        (ScriptKind.BALANCE, balance, 300),
    ],
)
def test_what_is_counted_is_what_scripts_cost(kind: ScriptKind, make: Any, objects: int) -> None:
    catalogue, progress, count = ScriptCatalogue(UTC), KnownProgress(), 30
    tracemalloc.start()
    try:
        for number in range(1, count + 1):
            listed = [f"{number}{each:04}" for each in range(objects)]
            row = BASE | make(number) | {"id": number, "permission_company_id": 7, "object_list": listed}
            catalogue.put(kind, number, row)
            del row
        for script in catalogue:
            if kind is ScriptKind.CALCULATE:
                at_once(script.body.reading())
        for number, (script, job) in enumerate(catalogue.jobs(7), 1_790_000_000_000_000):
            progress[job] = ScriptProgress(digest=script.digest, origin_us=number, done_us=number + 1_000_000)
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    paths = ["*/analysis/*", "*/expressions/*", "*/domain/*", "<string>"]  # the last one: where named tuples are made
    ours = [tracemalloc.Filter(True, path) for path in paths]
    grown = sum(each.size for each in snapshot.filter_traces(ours).statistics("filename"))
    counted = catalogue.memory.kept()[7].bytes
    assert 0.7 < counted / grown < 1.3, (counted, grown)
    for number in range(1, count + 1):
        catalogue.put(kind, number, None)
    assert catalogue.memory.kept() == {}
