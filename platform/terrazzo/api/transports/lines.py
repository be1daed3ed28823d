"""From bytes to lines. Pure."""

from __future__ import annotations

from collections import deque


class LineTooLong(Exception):
    """A line is over the limit; what follows can't be told apart any more."""


class Lines:
    """Splits what arrives at line feeds; a carriage return before one goes too.

    Args:
        most_bytes: of one line, when its turn comes; may be raised meanwhile.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.waiting_bytes = 0  # of complete lines
        self._ready: deque[bytes] = deque()
        self._rest = bytearray()
        self._is_broken = False

    def __len__(self) -> int:
        """How many lines are complete."""
        return len(self._ready)

    @property
    def kept_bytes(self) -> int:
        """Of all lines, complete or not."""
        return self.waiting_bytes + len(self._rest)

    @property
    def is_partial(self) -> bool:
        """Whether a line has begun and is not complete."""
        return bool(self._rest)

    @property
    def is_over(self) -> bool:
        """Whether the line that has begun is too long already."""
        return len(self._rest) > self.most_bytes + 1  # a carriage return may be the last

    def feed(self, data: bytes) -> None:
        """Takes what has arrived."""
        if self._is_broken:
            return
        *complete, rest = data.split(b"\n")
        for line in complete:
            self._add(bytes(self._rest) + line if self._rest else line)
            self._rest.clear()
        self._rest += rest

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
            line = self._ready.popleft()
            self.waiting_bytes -= len(line)
            if len(line) <= self.most_bytes:
                return line
            self._is_broken = True
        if self._is_broken or self.is_over:
            self._break()
            raise LineTooLong
        return None

    def _add(self, line: bytes) -> None:
        line = line.removesuffix(b"\r")
        self._ready.append(line)
        self.waiting_bytes += len(line)

    def _break(self) -> None:
        self._is_broken, self.waiting_bytes = True, 0
        self._ready.clear()
        self._rest.clear()
