"""From bytes to lines. Pure."""

from __future__ import annotations

from collections import deque


class LineTooLong(Exception):
    """A line is over the limit; what follows can't be told apart any more."""


class Lines:
    """Splits what arrives at line feeds; a carriage return before one goes too.

    Args:
        most_bytes: of one line.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._ready: deque[bytes] = deque()
        self._rest = bytearray()
        self._is_broken = False

    def __len__(self) -> int:
        """How many lines are complete."""
        return len(self._ready)

    @property
    def is_partial(self) -> bool:
        """Whether a line has begun and is not complete."""
        return bool(self._rest)

    def feed(self, data: bytes) -> None:
        """Takes what has arrived."""
        if self._is_broken:
            return
        *complete, rest = data.split(b"\n")
        for line in complete:
            self._add(bytes(self._rest) + line if self._rest else line)
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > self._most_bytes + 1:  # a carriage return may be the last
            self._break()

    def end(self) -> None:
        """Nothing more arrives: a last line needs no line feed."""
        if self._rest and not self._is_broken:
            self._add(bytes(self._rest))
            self._rest.clear()

    def next(self) -> bytes | None:
        """The next complete line, None where there is none yet.

        Raises:
            LineTooLong: after the last line before the one that is.
        """
        if self._ready:
            return self._ready.popleft()
        if self._is_broken:
            raise LineTooLong
        return None

    def _add(self, line: bytes) -> None:
        line = line.removesuffix(b"\r")
        if len(line) > self._most_bytes:
            self._break()
        elif not self._is_broken:
            self._ready.append(line)

    def _break(self) -> None:
        self._is_broken = True
        self._rest.clear()
