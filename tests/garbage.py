"""What only the garbage collector would find: objects that refer to each other and that nobody else has."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


def set_aside() -> None:
    """Collects, and takes what is left out of collection for good: tests before have left millions of objects."""
    gc.collect()
    gc.freeze()


@contextmanager
def garbage_by_type(found: Counter[str]) -> Iterator[None]:
    """Counts, by type, what the block has left to the collector, which rests meanwhile."""
    was_enabled = gc.isenabled()
    set_aside()
    gc.disable()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()


def of_each(found: Counter[str], count: int) -> dict[str, int]:
    """Types of ours and of the libraries that serve connections, of which there are as many as there were connections.

    asyncio's own transports refer to themselves; uvloop's don't.
    """
    looked_at = ("terrazzo", "aiohttp", "uvloop")
    return {name: number for name, number in found.items() if number >= count and name.startswith(looked_at)}
