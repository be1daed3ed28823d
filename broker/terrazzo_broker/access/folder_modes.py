"""Keeps the data folder to its owner: folders of mode 0700, files 0600, also where they existed before.

The folder itself is closed first: from then on nobody gets at what is in it. Links are not followed: what they point to
may be anybody's.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

MOST_ENTRIES = 1_000_000  # that one walk looks at; the folder itself is closed whatever is below
_OTHERS = 0o077

_log = logging.getLogger(__name__)


class Exposed(NamedTuple):
    """A file or folder that others than its owner may open."""

    path: Path
    mode: int
    is_folder: bool


class Closing(msgspec.Struct):
    """What closing a folder has done: entries whose mode changed, and those whose mode is not ours to change."""

    closed: int = 0
    refused: int = 0
    first_refused: str = ""


def find_exposed(folder: Path, *, most_entries: int = MOST_ENTRIES) -> Iterator[Exposed]:
    """Yields what others may open in a data folder, the folder itself first; looks at ``most_entries`` at most."""
    for path, found in _walk(folder, most_entries):
        if found.st_mode & _OTHERS:
            yield Exposed(path, stat.S_IMODE(found.st_mode), stat.S_ISDIR(found.st_mode))


def close_to_others(folder: Path, *, most_entries: int = MOST_ENTRIES) -> Closing:
    """Takes group's and others' permissions from a data folder and all in it. May be interrupted at any point."""
    told = Closing()
    for each in find_exposed(folder, most_entries=most_entries):
        try:
            _chmod(each)
            told.closed += 1
        except FileNotFoundError:
            continue  # a temporary file of somebody who runs beside us
        except OSError as error:
            told.refused += 1
            told.first_refused = told.first_refused or f"{each.path}: {error.strerror}"
    if told.closed:
        _log.warning("%s: %d files and folders were open to others and are so no more", folder, told.closed)
    if told.refused:
        _log.error(
            "%s: the modes of %d files and folders can't be changed (%s): others may look in; chown them to the user"
            " that the platform runs as",
            folder,
            told.refused,
            told.first_refused,
        )
    return told


def _walk(folder: Path, most_entries: int) -> Iterator[tuple[Path, os.stat_result]]:
    """Each folder before what is in it, so that whoever closes what comes closes the door before the drawers."""
    waiting = [folder.resolve()]
    try:
        yield waiting[0], waiting[0].stat()
    except FileNotFoundError:
        return
    left = most_entries
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue  # gone, or not ours: it was told of when its mode was to be changed
        with entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    _log.warning(
                        "%s has more than %d files: modes of the others were not looked at", folder, most_entries
                    )
                    return
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                    continue  # a link, whose target may be anybody's; a socket, whose mode says who may connect
                yield Path(entry.path), found
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(Path(entry.path))


def _chmod(exposed: Exposed) -> None:
    """Changes the mode of what is open, not of what a name may have come to mean since: a link is refused."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_DIRECTORY if exposed.is_folder else 0)
    descriptor = os.open(exposed.path, flags)
    try:
        os.fchmod(descriptor, exposed.mode & ~_OTHERS)
    finally:
        os.close(descriptor)
