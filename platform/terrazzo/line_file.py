"""A file of lines that says what happened last, written along: read at a start, added to, and now and then made anew.

It is not synced: after a power cut the last lines may be missing. A crash in the middle of a line loses that line,
and one while the file is made anew leaves the former.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from terrazzo.sparse_log import SparseLog

_COMPACT_LINES = 50_000

_log = logging.getLogger(__name__)


class LineFile:
    """Lines without their ends, of mode 0600. ``rewrite`` opens it for appending.

    Args:
        path: the file; made when it isn't there.
        consequence: what the log says of a line that can't be written: "a restart would forget ...".
    """

    def __init__(self, path: Path, consequence: str) -> None:
        self._path = path
        self._consequence = consequence
        self._file: int | None = None
        self._lines = 0
        self._most_lines = 0
        self._is_torn = False
        self._failure_log = SparseLog(_log)

    def load(self) -> list[str]:
        """The whole lines; what a crash has left of one at the end is none."""
        with contextlib.suppress(FileNotFoundError):
            return self._path.read_text(errors="replace").split("\n")[:-1]
        return []

    def append(self, line: str, kept: Callable[[], Iterable[str]]) -> None:
        """Adds a line; a failing disk is logged only. ``kept``: the lines that matter, when there are too many."""
        if self._file is None:
            return
        data = f"\n{line}\n".encode() if self._is_torn else f"{line}\n".encode()
        self._is_torn = True
        try:
            self._is_torn = os.write(self._file, data) < len(data)
            self._lines += 1
            if self._lines > self._most_lines:
                self.rewrite(kept())
        except OSError as error:
            self._failure_log.warning("%s: %s; %s", self._path, error.strerror, self._consequence)

    def rewrite(self, lines: Iterable[str]) -> None:
        """Has these lines in the file and no others.

        Raises:
            OSError: the file can't be written.
        """
        fresh, kept = self._path.with_suffix(".new"), list(lines)
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            with open(file, "w", closefd=False) as out:
                out.writelines(f"{line}\n" for line in kept)
            os.replace(fresh, self._path)
        except OSError:
            os.close(file)
            raise
        self.close()
        self._file, self._lines, self._is_torn = file, len(kept), False
        self._most_lines = _COMPACT_LINES + 2 * len(kept)

    def close(self) -> None:
        """Closes the file; what is appended then is not written."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
