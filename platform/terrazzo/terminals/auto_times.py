"""The times in the last accepted ``auto`` passwords, kept over a restart so that none serves twice.

The file has a line ``<unix seconds> <uid>`` for each login. It is not synced: a login that a power cut makes us forget
could only be replayed within the next minutes, by someone who listened.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from terrazzo.sparse_log import SparseLog

KEPT_S = 600  # longer than any password can be replayed

_COMPACT_LINES = 50_000

_log = logging.getLogger(__name__)


class AutoTimes:
    """The time in each terminal's last accepted ``auto`` password, unix seconds by uid; kept in ``path``, if given."""

    def __init__(self, path: Path | None = None, *, now_s: float = 0) -> None:
        self._path = path
        self._times: dict[str, int] = {}
        self._lines = 0
        self._file: int | None = None
        self._failure_log = SparseLog(_log)
        if path is not None:
            self._load(path, now_s)
            self._rewrite(now_s)

    def last(self, uid: str) -> int:
        """The time in the last accepted password, unix seconds; 0 when none is known."""
        return self._times.get(uid, 0)

    def accept(self, uid: str, time_s: int, *, now_s: float) -> None:
        """Notes that a password with this time (unix seconds) was accepted; a failing file is logged only."""
        self._times[uid] = time_s
        if self._file is None:
            return
        try:
            os.write(self._file, f"{time_s} {uid}\n".encode())
            self._lines += 1
            if self._lines > _COMPACT_LINES + 2 * len(self._times):
                self._rewrite(now_s)
        except OSError as error:
            self._failure_log.warning("%s: %s; a restart would forget logins", self._path, error.strerror)

    def forget(self, uid: str) -> None:
        """Drops a terminal that was deleted."""
        self._times.pop(uid, None)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _load(self, path: Path, now_s: float) -> None:
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(errors="replace").splitlines():
                seconds, _, uid = line.partition(" ")
                if seconds.isdecimal() and uid and abs(int(seconds) - now_s) <= KEPT_S:
                    self._times[uid] = max(int(seconds), self.last(uid))

    def _rewrite(self, now_s: float) -> None:
        """Drops times older than ``KEPT_S``, in memory and in the file, which is written anew."""
        assert self._path is not None
        self._times = {uid: at for uid, at in self._times.items() if abs(at - now_s) <= KEPT_S}
        fresh = self._path.with_suffix(".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.write(file, "".join(f"{at} {uid}\n" for uid, at in self._times.items()).encode())
        os.replace(fresh, self._path)
        self.close()
        self._file, self._lines = file, len(self._times)
