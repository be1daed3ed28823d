"""What a subscription is about; equal ones share a feed."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class LiveKind(Enum):
    """What can be subscribed to."""

    GRID = "grid"  # records of terminals
    MOSAIC = "mosaic"  # records of objects' variables
    EVENT = "event"
    RETAINER = "retainer"  # labels that open and close
    TERMINAL = "terminal"  # who is there, and changed records
    COMMAND = "command"  # each step of a command
    OBJECT = "object"  # objects' flags


OF_TERMINALS = frozenset({LiveKind.GRID.value, LiveKind.TERMINAL.value, LiveKind.COMMAND.value})
"""Kinds that an object takes part in through the terminals of its ``terminal_list``."""


class Selector(NamedTuple):
    """Which of what happens: of a terminal, of an object, or of a whole company.

    With both a terminal and an object, what is of terminals comes from the one, the rest from the other.
    """

    kinds: frozenset[str]
    company_id: int | None  # None: of all companies, for super users
    object_id: int | None = None
    terminal_id: str | None = None  # its uid
    keys: frozenset[str] = frozenset()  # of mosaic records; empty: all

    def route(self, kind: str) -> Route:
        """Where the index has this selector's feed."""
        mine, other = (self.terminal_id, self.object_id), (self.object_id, self.terminal_id)
        for key in mine if kind in OF_TERMINALS else other:
            if key is not None:
                return kind, key
        return kind, ALL if self.company_id is None else (self.company_id,)


ALL = ()
Route = tuple[str, int | str | tuple[int, ...]]
"""A kind with an object's id, a terminal's uid, ``(company id,)``, or ``ALL``."""
