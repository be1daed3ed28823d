"""How fast stored payloads are read for a client that is back: as fast as it takes them, within its owner's turns."""

from __future__ import annotations

from collections.abc import Callable

from ..scheduling.turns import Turns

PIECE_BYTES = 256 << 10  # that are read in one turn, and one payload more


class ReadPace:
    """Of one connection.

    Args:
        takes_more: whether the client takes more now. When it does again, somebody calls ``go_on``.
        go_on: asks ``may_read`` again.
        turns: the loop's.
        owner: whose turns.
    """

    __slots__ = ("_go_on", "_is_due", "_owner", "_read_bytes", "_takes_more", "_turns")

    def __init__(self, takes_more: Callable[[], bool], go_on: Callable[[], None], *, turns: Turns, owner: str) -> None:
        self._takes_more = takes_more
        self._go_on = go_on
        self._turns = turns
        self._owner = owner
        self._is_due = False
        self._read_bytes = 0

    def may_read(self, size: int) -> bool:
        """Whether a payload of so many bytes is read now; if not it is asked again later."""
        if self._is_due or not self._takes_more():
            return False
        if self._read_bytes >= PIECE_BYTES or not self._turns.is_inside or self._turns.is_over:
            self._is_due = True
            self._turns.later(self._owner, self._begin)
            return False
        self._read_bytes += size
        return True

    def _begin(self) -> None:
        self._is_due = False
        self._read_bytes = 0
        self._go_on()
