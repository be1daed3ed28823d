"""The times in the last accepted ``auto`` passwords, kept over a restart so that none serves twice.

The file has a line ``<unix seconds> <uid>`` for each login. It is not synced: a login that a power cut makes us forget
could only be replayed within the next minutes, by someone who listened.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from terrazzo.line_file import LineFile

KEPT_S = 600  # longer than any password can be replayed


class AutoTimes:
    """The time in each terminal's last accepted ``auto`` password, unix seconds by uid; kept in ``path``, if given."""

    def __init__(self, path: Path | None = None, *, now_s: float = 0) -> None:
        self._times: dict[str, int] = {}
        self._file = None if path is None else LineFile(path, "a restart would forget logins")
        if self._file is not None:
            self._load(self._file.load(), now_s)
            self._file.rewrite(self._kept(now_s))

    def last(self, uid: str) -> int:
        """The time in the last accepted password, unix seconds; 0 when none is known."""
        return self._times.get(uid, 0)

    def accept(self, uid: str, time_s: int, *, now_s: float) -> None:
        """Notes that a password with this time (unix seconds) was accepted; a failing file is logged only."""
        self._times[uid] = time_s
        if self._file is not None:
            self._file.append(f"{time_s} {uid}", lambda: self._kept(now_s))

    def forget(self, uid: str) -> None:
        """Drops a terminal that was deleted."""
        self._times.pop(uid, None)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _load(self, lines: list[str], now_s: float) -> None:
        for line in lines:
            seconds, _, uid = line.partition(" ")
            if seconds.isdecimal() and uid and abs(int(seconds) - now_s) <= KEPT_S:
                self._times[uid] = max(int(seconds), self.last(uid))

    def _kept(self, now_s: float) -> Iterator[str]:
        """The lines of the times that still matter; drops the others."""
        self._times = {uid: at for uid, at in self._times.items() if abs(at - now_s) <= KEPT_S}
        return (f"{at} {uid}" for uid, at in self._times.items())
