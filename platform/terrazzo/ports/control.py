"""Where commands on this machine find the platform that runs on a data folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOCKET = "control.sock"
_LONGEST = 100  # bytes of an address; Linux takes 107, others less


@contextmanager
def at_folder(data_dir: Path) -> Iterator[str]:
    """The address of the socket in a data folder; a long path is shortened for as long as the block lasts [unix(7)].

    Raises:
        OSError: the folder can't be opened, or is too deep for this system.
    """
    path = os.fspath(data_dir / SOCKET)
    if len(os.fsencode(path)) <= _LONGEST:
        yield path
        return
    folder = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not Path(f"/proc/self/fd/{folder}").is_dir():
            raise OSError(f"{path}: is too long for a Unix socket on this system")
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)
