"""The times in the last accepted ``auto`` passwords, kept over a restart so that none serves twice.

The file has a line ``<unix milliseconds> <uid>`` for each login, with seconds in files of former versions, which have
fewer digits. It is not synced: a login that a power cut makes us forget
could only be replayed within the next minutes, by someone who listened.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from terrazzo.line_file import LineFile

KEPT_S = 600  # longer than any password can be replayed
_MS_DIGITS = 13


class AutoTimes:
    """The time in each terminal's last accepted ``auto`` password, by uid; kept in ``path``, if given.

    Times are Unix milliseconds.
    """

    def __init__(self, path: Path | None = None, *, now_ms: int = 0) -> None:
        self._times: dict[str, int] = {}
        self._file = None if path is None else LineFile(path, "a restart would forget logins")
        if self._file is not None:
            self._load(self._file.load(), now_ms)
            self._file.rewrite(self._kept(now_ms))

    def last_ms(self, uid: str) -> int:
        """The time in the last accepted password; 0 when none is known."""
        return self._times.get(uid, 0)

    def accept(self, uid: str, time_ms: int, *, now_ms: int) -> None:
        """Notes that a password with this time was accepted; a failing file is logged only."""
        self._times[uid] = time_ms
        if self._file is not None:
            self._file.append(f"{time_ms} {uid}", lambda: self._kept(now_ms))

    def forget(self, uid: str) -> None:
        """Drops a terminal that was deleted."""
        self._times.pop(uid, None)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _load(self, lines: list[str], now_ms: int) -> None:
        for line in lines:
            digits, _, uid = line.partition(" ")
            if not digits.isdecimal() or not uid:
                continue
            time_ms = int(digits) if len(digits) >= _MS_DIGITS else int(digits) * 1_000
            if abs(time_ms - now_ms) <= KEPT_S * 1_000:
                self._times[uid] = max(time_ms, self.last_ms(uid))

    def _kept(self, now_ms: int) -> Iterator[str]:
        """The lines of the times that still matter; drops the others."""
        self._times = {uid: at for uid, at in self._times.items() if abs(at - now_ms) <= KEPT_S * 1_000}
        times = self._times.copy()  # for another thread
        return (f"{at} {uid}" for uid, at in times.items())
