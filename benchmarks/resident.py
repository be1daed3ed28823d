"""What a server and its children have resident."""

from __future__ import annotations

import psutil


def resident_bytes(process: psutil.Process) -> int:
    """What it has resident, and what of its children's is theirs alone; the same libraries are there once.

    Raises:
        psutil.Error: one of them has ended meanwhile.
    """
    children = [child.memory_info() for child in children_of(process)]
    return int(process.memory_info().rss) + sum(each.rss - each.shared for each in children)


def children_of(process: psutil.Process) -> list[psutil.Process]:
    """Its children and theirs; without one that has not begun its own program yet: its memory is still its parent's.

    Raises:
        psutil.Error: one of them has ended meanwhile.
    """
    own = process.cmdline()
    return [child for child in process.children(recursive=True) if child.cmdline() != own]
