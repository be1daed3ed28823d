"""What a subscription selects: kinds, and a company, an object or a terminal. Equal selectors share a feed."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class LiveKind(Enum):
    """The kinds of live frames."""

    GRID = "grid"  # records of terminals
    MOSAIC = "mosaic"  # records of objects' variables
    EVENT = "event"
    RETAINER = "retainer"  # labels that open and close
    TERMINAL = "terminal"  # who is there, and changed records
    COMMAND = "command"  # each step of a command
    OBJECT = "object"  # objects' flags
    DIAGNOSTIC = "diagnostic"  # why terminals are refused
    ATTENTION = "attention"  # that what needs a person has changed
    TRACE = "trace"  # packets of a terminal that is traced; for administrators


OF_TERMINALS = frozenset(
    {
        LiveKind.GRID.value,
        LiveKind.TERMINAL.value,
        LiveKind.COMMAND.value,
        LiveKind.DIAGNOSTIC.value,
        LiveKind.TRACE.value,
    }
)
"""Kinds that an object takes part in through the terminals of its ``terminal_list``."""


EVERY_KEY: frozenset[str] = frozenset()
"""The variables of mosaic records that a subscription selects which selects none: all."""


class Selector(NamedTuple):
    """Selects publications of some kinds: about a terminal, an object, or a whole company.

    With both a terminal and an object, kinds in ``OF_TERMINALS`` are the terminal's, all others the object's.
    """

    kinds: frozenset[str]
    company_id: int | None  # None: of all companies, for super users
    object_id: int | None = None
    terminal_id: str | None = None  # its uid

    def feed_key(self, kind: str) -> FeedKey:
        """The key under which ``FeedIndex`` has this selector's feed for a kind."""
        mine, other = (self.terminal_id, self.object_id), (self.object_id, self.terminal_id)
        for key in mine if kind in OF_TERMINALS else other:
            if key is not None:
                return kind, key
        return kind, ALL if self.company_id is None else (self.company_id,)


ALL = ()
FeedKey = tuple[str, int | str | tuple[int, ...]]
"""A kind, with an object's id, a terminal's uid, ``(company id,)``, or ``ALL``."""
