"""What is kept of a period: enough for every function, and to make longer periods from shorter ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from terrazzo.loop_pauses import Steps
from terrazzo.ports.store import Value


class PeriodTally(msgspec.Struct, array_like=True):
    """The points of one code in order of time. Only numbers are summed up and compared, true and false as 1 and 0."""

    count: int = 0
    numbers: int = 0
    total: float = 0.0
    lowest: float | int | None = None
    highest: float | int | None = None
    first: Value = None
    last: Value = None
    first_number: float | int | None = None
    last_number: float | int | None = None

    def add(self, value: float | int | str | bool) -> None:
        """One more point, later than those before."""
        if not self.count:
            self.first = value
        self.count += 1
        self.last = value
        if not isinstance(value, str):
            self._add_number(+value)

    def _add_number(self, value: float | int) -> None:
        if self.lowest is None or self.highest is None:
            self.lowest = self.highest = self.first_number = value
        elif value < self.lowest:
            self.lowest = value
        elif value > self.highest:
            self.highest = value
        self.numbers += 1
        self.total += value
        self.last_number = value

    def join(self, later: PeriodTally) -> None:
        """Adds the points of a period that follows this one."""
        if not later.count:
            return
        if not self.count:
            self.first = later.first
        self.count += later.count
        self.last = later.last
        if later.lowest is None or later.highest is None:
            return
        if self.lowest is None or self.highest is None:
            self.lowest, self.highest, self.first_number = later.lowest, later.highest, later.first_number
        else:
            self.lowest, self.highest = min(self.lowest, later.lowest), max(self.highest, later.highest)
        self.numbers += later.numbers
        self.total += later.total
        self.last_number = later.last_number


class Summary(msgspec.Struct, array_like=True):
    """One period. ``held_us``: how long watched values were there, by ``code==value``."""

    tallies: dict[str, PeriodTally] = msgspec.field(default_factory=dict)
    held_us: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell of the period."""
        return not any(tally.count for tally in self.tallies.values()) and not any(self.held_us.values())


_decoder = msgspec.msgpack.Decoder(Summary)


def encode_summary(summary: Summary) -> bytes:
    """A period's summary as the bytes that the database keeps."""
    return msgspec.msgpack.encode(summary)


def decode_summary(body: bytes) -> Summary:
    """A period's summary from the bytes that the database keeps."""
    return _decoder.decode(body)


def joining(parts: Iterable[Summary]) -> Steps[Summary]:
    """The summary of consecutive periods taken together, earliest first, a part at a time."""
    whole = Summary()
    for part in parts:
        for code, tally in part.tallies.items():
            whole.tallies.setdefault(code, PeriodTally()).join(tally)
        for key, held_us in part.held_us.items():
            whole.held_us[key] = whole.held_us.get(key, 0) + held_us
        yield
    return whole
