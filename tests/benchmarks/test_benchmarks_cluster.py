"""``benchmarks/cluster.py``: what it checks at the end finds each planted fault, and its load numbers messages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from open_stores import open_rocks, supervisor
from terrazzo.ports.store import Record

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
UIDS, SENT = ("t-1", "t-2"), 30
Change = Callable[[list[Record]], list[Record]]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, which finds those beside it; ``cluster`` is a package of the tests."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCHMARKS)])
    spec = spec_from_file_location("cluster_benchmark", BENCHMARKS / "cluster.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def records() -> list[Record]:
    """What two terminals have said, and what an object made of it."""
    said = [Record(f"g/{uid}/r", 5 + n // 4, b'{"P0":1,"State":"%08d"}' % n) for n in range(SENT) for uid in UIDS]
    return [*said, *(Record("m/1", 5 + n, b"\x81\xa1V\x01") for n in range(SENT))]


def without(place: int) -> Change:
    return lambda found: found[:place] + found[place + 1 :]


def twice(place: int) -> Change:
    return lambda found: [*found[: place + 1], *found[place:]]


def swapped(found: list[Record]) -> list[Record]:
    return [found[2], found[1], found[0], *found[3:]]


def stores(folder: Path, change: Change) -> SimpleNamespace:
    """A cluster that has ended: what ``a`` has is right, ``b`` has it changed."""

    async def fill(name: str, found: list[Record]) -> None:
        tasks = supervisor()
        store = await open_rocks(folder / name / "series", tasks)
        await store.append(found)
        await store.close()
        await tasks.close()

    asyncio.run(fill("a", records()))
    asyncio.run(fill("b", change(records())))
    return SimpleNamespace(folder=folder, nodes=[SimpleNamespace(name=name) for name in "ab"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without(4), ["b, t-1: 1 of 30 are missing, 0 are there twice", "a and b differ in g/t-1/r"]),
        (twice(5), ["b, t-2: 0 of 30 are missing, 1 are there twice", "a and b differ in g/t-2/r"]),
        (swapped, ["b, t-1: 0 of 30 are missing, 0 are there twice, or out of order", "a and b differ in g/t-1/r"]),
        (without(2 * SENT + 3), ["a and b differ in m/1"]),
        (lambda found: found, []),
    ],
    ids=["dropped", "doubled", "swapped", "mapped one dropped", "right"],
)
def test_what_is_not_stored_once_and_in_order_is_found(
    bench: Any, tmp_path: Path, change: Change, words: list[str]
) -> None:
    found = bench.check(stores(tmp_path, change), UIDS, SENT)
    assert len(found) == len(words)
    assert all(line.startswith(said) for line, said in zip(found, words, strict=True)), found


def test_that_nothing_was_mapped_is_found(bench: Any, tmp_path: Path) -> None:
    found = bench.check(stores(tmp_path, lambda found: found), UIDS, SENT)
    assert found == []
    (tmp_path / "other").mkdir()
    only_said = stores(tmp_path / "other", lambda found: found[: 2 * SENT])
    only_said.nodes = only_said.nodes[1:]
    assert bench.check(only_said, UIDS, SENT) == ["nothing is mapped"]


def test_each_message_has_the_next_number(bench: Any) -> None:
    from numbered_publishers import NumberedConnection, number_of
    from publishers import Load

    load = Load("127.0.0.1", 0, ["t"], 100, window=50, first=90)
    blocks = NumberedConnection.precode(load, "t")
    packets = [next(blocks) for _ in range(4)]
    texts = [part.split(b'"State":')[1:] for part in packets]
    numbers = [number_of(b'"State":' + text) for block in texts for text in block]
    assert numbers == list(range(90, 190))
    with pytest.raises(ValueError, match="without a number"):
        number_of(b'{"State":"run"}')
