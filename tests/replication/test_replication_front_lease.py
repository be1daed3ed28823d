"""A front that begins again while its earlier start is declared dead: it waits, and goes on with a later epoch."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from terrazzo.ports.stream import RecordChanged, Revision
from terrazzo.replication.front_lease import FrontLease, FrontRecord, decode_front
from terrazzo.replication.members import NodeTaken


class Kept:
    """A record in memory; ``before``: what somebody else does before the calls, the first one's first."""

    def __init__(self, found: Revision | None, *before: Callable[[Kept], None] | None) -> None:
        self.found = found
        self._before = list(before)

    def _pass(self) -> None:
        if self._before and (change := self._before.pop(0)) is not None:
            change(self)

    async def get(self, key: str) -> Revision | None:
        self._pass()
        return self.found

    async def put(self, key: str, value: bytes, *, revision: int) -> int:
        self._pass()
        if revision != (self.found.revision if self.found else 0):
            raise RecordChanged(key)
        self.found = Revision(value, revision + 1)
        return revision + 1

    async def delete(self, key: str) -> None:
        self.found = None

    async def all(self) -> dict[str, bytes]:
        return {}


def record(*, run: str = "before", epoch: int = 9, is_free: bool = False) -> bytes:
    return msgspec.json.encode(FrontRecord("f", run, epoch, is_free=is_free))


def declare_dead(kept: Kept) -> None:
    assert kept.found is not None
    kept.found = Revision(record(is_free=True), kept.found.revision + 1)


def forget(kept: Kept) -> None:
    kept.found = None


def begin_another(kept: Kept) -> None:
    assert kept.found is not None
    kept.found = Revision(record(run="another", epoch=10), kept.found.revision + 1)


def renew_another(kept: Kept) -> None:
    assert kept.found is not None
    kept.found = Revision(kept.found.value, kept.found.revision + 1)


async def claimed(kept: Kept, now_us: int = 5) -> tuple[FrontLease, FrontRecord]:
    lease = FrontLease(kept, node="f", run="now", lease_s=0.0, clock=lambda: 100.0)
    await lease.claim(now_us)
    assert kept.found is not None
    return lease, decode_front(kept.found.value)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([None, declare_dead], id="while it waits"),
        pytest.param([None, None, declare_dead], id="between its last look and its writing"),
        pytest.param([declare_dead], id="before it looks"),
    ],
)
async def test_it_begins_with_the_next_epoch_when_the_earlier_start_was_declared_dead(
    before: list[Callable[[Kept], None] | None],
) -> None:
    lease, written = await claimed(Kept(Revision(record(), 3), *before))
    assert (written.run, written.epoch, written.is_free) == ("now", 10, False)
    assert lease.epoch == 10


async def test_its_epoch_is_a_later_one_when_the_record_is_forgotten_while_it_waits() -> None:
    lease, written = await claimed(Kept(Revision(record(epoch=70), 3), None, forget))
    assert (lease.epoch, written.run) == (71, "now")
    lease, _ = await claimed(Kept(Revision(record(epoch=70), 3), None, None, forget), 80)
    assert lease.epoch == 80


async def test_another_start_that_was_faster_has_the_name() -> None:
    kept = Kept(Revision(record(), 3), None, None, begin_another, None, renew_another)
    with pytest.raises(NodeTaken, match="another process runs as the front 'f'"):
        await claimed(kept)
    assert kept.found is not None
    assert decode_front(kept.found.value).run == "another"


async def test_one_that_was_faster_and_is_silent_is_waited_for() -> None:
    lease, written = await claimed(Kept(Revision(record(), 3), None, None, begin_another))
    assert (lease.epoch, written.run) == (11, "now")
