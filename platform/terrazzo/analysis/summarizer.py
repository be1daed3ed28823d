"""One pass over an object's records, cut into consecutive periods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from terrazzo.analysis.statistics_rows import StatisticsRows
from terrazzo.analysis.tally import PeriodTally, Summary
from terrazzo.expressions.functions import same
from terrazzo.mosaic.body import parse_mosaic
from terrazzo.ports.store import Record, Value


class Summarizer:
    """Takes records oldest first, then ``finish``.

    Args:
        bounds: beginnings of the periods, and the end of the last.
        carried: what watched codes were before the first period; the time that a value holds counts from there.
    """

    def __init__(self, statistics_rows: StatisticsRows, bounds: Sequence[int], carried: Mapping[str, Value]) -> None:
        self._statistics_rows = statistics_rows
        self._bounds = bounds
        self._place = 0
        self._summary = Summary()
        self._done: list[Summary] = []
        self._since_us = dict.fromkeys(statistics_rows.watched, bounds[0])
        before = {code: carried.get(code) for code in statistics_rows.watched}
        self._counted = {code: self._matching(code, value) for code, value in before.items()}

    def feed(self, records: Iterable[Record]) -> None:
        """Takes the next records of the range, in order of time."""
        codes, watched = self._statistics_rows.codes, self._statistics_rows.watched
        end_us = self._bounds[self._place + 1]
        for record in records:
            if record.time_us >= end_us:
                self._move(record.time_us)
                end_us = self._bounds[self._place + 1]
            values = parse_mosaic(record.body)
            tallies = self._summary.tallies
            for code in codes:
                if code not in values:
                    continue
                value = values[code]
                if value is not None:
                    tally = tallies.get(code)
                    if tally is None:
                        tally = tallies[code] = PeriodTally()
                    tally.add(value)
                if code in watched:
                    self._change(code, value, record.time_us)

    def finish(self) -> list[Summary]:
        """Ends the pass: the summaries of all periods, in their order."""
        self._move(self._bounds[-1])
        return self._done

    def _move(self, time_us: int) -> None:
        """Ends the periods that end at or before a time."""
        while len(self._done) < len(self._bounds) - 1 and time_us >= self._bounds[self._place + 1]:
            for code in self._counted:
                self._count(code, self._bounds[self._place + 1])
            self._done.append(self._summary)
            self._summary = Summary()
            self._place = min(self._place + 1, len(self._bounds) - 2)

    def _change(self, code: str, value: Value, time_us: int) -> None:
        self._count(code, time_us)
        self._counted[code] = self._matching(code, value)

    def _count(self, code: str, until_us: int) -> None:
        held_us = self._summary.held_us
        for key in self._counted[code]:
            held_us[key] = held_us.get(key, 0) + until_us - self._since_us[code]
        self._since_us[code] = until_us

    def _matching(self, code: str, value: Value) -> tuple[str, ...]:
        """The watched values that a value equals; none for null, after which nothing is known until the next record."""
        if value is None:
            return ()
        return tuple(f"{code}=={each}" for each in self._statistics_rows.watched[code] if same(value, each))
