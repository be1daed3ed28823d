"""``ReadPosition``: how far the time series and the registry are, as the header ``Terrazzo-Position`` says it."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from terrazzo.reasons import say

POSITION = "Terrazzo-Position"
"""A change answers with it, a read may bring it: then its answer has that change and all before it."""

FRESHNESS = "Terrazzo-Replica"
"""Each answer of a replica says in it how far behind the leader it may be."""

_SHAPE = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})", re.ASCII)


class ReadPosition(NamedTuple):
    """Frames of the log, and changes of the registry, up to these numbers."""

    sequence: int
    change: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads what ``str`` writes.

        Raises:
            ValueError: it is something else.
        """
        found = _SHAPE.fullmatch(text.strip()) if len(text) <= 64 else None
        if found is None:
            raise ValueError(say("position_expected", got=text[:64]))
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.sequence}.{self.change}"
