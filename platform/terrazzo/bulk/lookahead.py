"""A text of many megabytes, read from its start without being put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_PIECE_CHARACTERS = 1 << 20  # the least that is added at a time, where there is as much


class Lookahead:
    """A stretch of a text, which moves on as its reader does.

    ``stretch``: what is here of the text. ``at``: where the reader is in it, which the reader moves on.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self.stretch = ""
        self.at = 0
        self._pieces = _cut(pieces)
        self._is_whole = False  # all that is left is in the stretch

    def fill(self, characters: int) -> str:
        """The stretch, with so many characters after ``at`` unless the text has fewer; moves ``at`` when it grows."""
        missing = characters - (len(self.stretch) - self.at)
        if missing <= 0 or self._is_whole:
            return self.stretch
        parts = [self.stretch[self.at :]]
        while missing > 0 and not self._is_whole:
            piece = next(self._pieces, "")
            self._is_whole = not piece
            parts.append(piece)
            missing -= len(piece)
        self.stretch, self.at = "".join(parts), 0
        return self.stretch


def _cut(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        for begun in range(0, len(piece), _PIECE_CHARACTERS):
            yield piece[begun : begun + _PIECE_CHARACTERS]
