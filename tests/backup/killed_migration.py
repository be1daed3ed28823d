"""``terrazzo migrate`` that is killed (SIGKILL) at a point of its work: ``killed_migration.py WHAT COUNT migrate ...``.

WHAT is what is told as progress, the COUNTth time, or a step of the end: ``verified``, ``database released``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from terrazzo.backup.migration import registry, rows, series
from terrazzo.backup.migration.marker import Marker
from terrazzo.cli import main
from terrazzo.cli.migration import command


def killing_after(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and then the end."""

    @wraps(work)
    async def wrapped(*given: Any) -> None:
        await work(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    return wrapped


def run(what: str, count: int, arguments: list[str]) -> None:
    left = count

    def tell(told: str, _done: int, _total: int) -> None:
        nonlocal left
        left -= told == what
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def progress() -> Iterator[Callable[[str, int, int], None]]:
        yield tell

    write = Marker.write

    def write_and_tell(marker: Marker, folder: Any) -> None:
        write(marker, folder)
        if marker.is_verified:
            tell("verified", 0, 0)

    series._BATCH_RECORDS, rows._MOST_ROWS = 9, 50  # several transactions and commits of each
    command._progress = progress
    Marker.write = write_and_tell  # type: ignore[method-assign]
    if what == "database released":
        registry.release_database = killing_after(registry.release_database)
    sys.argv[1:] = arguments
    main()


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
