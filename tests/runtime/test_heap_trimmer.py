"""What the C library keeps free between things that stay goes back to the system after a while, and once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from terrazzo.runtime.heap import _AGAIN_BYTES, _LEAST_BYTES, _LOOKS, HeapTrimmer

PROGRAM = """
import asyncio, sys
from terrazzo.runtime.allocator import settle_allocator
from terrazzo.runtime.heap import HeapTrimmer, heap, resident_bytes

if not heap():
    sys.exit("another C library")
settle_allocator()
before = resident_bytes()
things = [bytearray(b"x") * 900_000 for _ in range(100)]
stay = things[::7]  # a heap's end stays among them
del things
kept = resident_bytes() - before
trimmer = HeapTrimmer()
for _ in range(3):
    asyncio.run(trimmer.look())
print(kept, resident_bytes() - before, sum(map(len, stay)))
"""


def test_what_was_freed_between_things_that_stay_goes_back_to_the_system() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    if "another C library" in ended.stderr:
        pytest.skip("not glibc 2.33 or newer")
    assert ended.returncode == 0, ended.stderr
    kept, left, stays = map(int, ended.stdout.split())
    assert kept > 4 * stays, "by itself it stays"
    assert left < 2 * stays


class World:
    """A heap of which some is free, and how much of that the process has."""

    def __init__(self) -> None:
        self.free = 0
        self.given_back = 0  # and not used since
        self.used = 100 * 2**20
        self.trims = 0
        self.trimmer = HeapTrimmer(lambda: self.free, resident=lambda: self.resident, trim=self._trim)

    @property
    def resident(self) -> int:
        return self.used + self.free - self.given_back

    def looks(self, count: int) -> int:
        return sum(self.trimmer.look_now() for _ in range(count))

    def use(self, size: int) -> None:
        """Allocates of what is free; what was given back is taken first."""
        self.free, self.used = self.free - size, self.used + size
        self.given_back = max(0, self.given_back - size)

    def leave(self, size: int) -> None:
        self.free, self.used = self.free + size, self.used - size

    def _trim(self) -> None:
        self.trims += 1
        self.given_back = self.free


def test_only_what_stays_free_for_some_looks_is_given_back() -> None:
    world = World()
    for _ in range(20):
        world.leave(_LEAST_BYTES)
        assert world.looks(_LOOKS - 1) == 0
        world.use(_LEAST_BYTES)
        assert world.looks(1) == 0
    world.leave(_LEAST_BYTES - 1)
    assert world.looks(20) == world.trims == 0, "so much is needed again and again"
    world.leave(1)
    assert world.looks(_LOOKS) == _LEAST_BYTES


def test_what_was_given_back_is_not_given_back_again() -> None:
    world = World()
    world.leave(2 * _LEAST_BYTES)
    assert world.looks(20) == 2 * _LEAST_BYTES
    assert world.trims == 1
    world.leave(_AGAIN_BYTES - 1)
    world.use(_LEAST_BYTES // 4)
    assert world.looks(20) == 0, "hardly more is free than then"
    world.leave(_LEAST_BYTES // 4 + 1)
    assert world.looks(20) == _AGAIN_BYTES + _LEAST_BYTES // 4
    assert world.trims == 2


def test_another_c_library_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo.runtime.heap._find_mallinfo", lambda: None)
    trims: list[int] = []
    trimmer = HeapTrimmer(trim=lambda: trims.append(1))
    assert [trimmer.look_now() for _ in range(5)] == [0] * 5
    assert trims == []
