"""The processes whose memory is a server's."""

from __future__ import annotations

import psutil


def children_of(process: psutil.Process) -> list[psutil.Process]:
    """Its children and theirs; without one that has not begun its own program yet: its memory is still its parent's.

    Raises:
        psutil.Error: one of them has ended meanwhile.
    """
    own = process.cmdline()
    return [child for child in process.children(recursive=True) if child.cmdline() != own]
