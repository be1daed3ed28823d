"""The error of a file with users or access rights, and its lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


class AccessFileError(ValueError):
    """A password or access control file can't be used; the text names the file, and the line from 1."""


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that say something, without blanks at their ends, numbered from 1.

    Raises:
        AccessFileError: the file can't be read, or isn't UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise AccessFileError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise AccessFileError(f"{path}: not UTF-8 at byte {error.start}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip()


def bad_line(path: Path, number: int, reason: str) -> AccessFileError:
    """The error of one line. It doesn't repeat the line, which may have a password in it."""
    return AccessFileError(f"{path}, line {number}: {reason}")
