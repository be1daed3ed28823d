"""The labels of one object: a state machine for each row of each retainer that runs on it.

==========  ===========================  =======  ==========================================================
label       the value                    and      then
==========  ===========================  =======  ==========================================================
closed      equals the open value        did not  opens
closed      equals the open value        did      stays closed: it was closed by hand
open        equals the open value        either   stays open, one label
open        equals the close value       either   closes
open        anything else                either   closes where the close value is empty, else stays open
either      null                         either   stays as it is: nothing is known
==========  ===========================  =======  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from terrazzo.expressions.functions import Value, same

Key = tuple[int, str]
"""A retainer script's id and a code: with the object, what names a label."""


class LabelRule(msgspec.Struct, frozen=True):
    """A row of a retainer script that runs on an object."""

    project_id: int
    class_id: str
    code: str
    label_en: str
    label_cn: str
    open_value: str
    close_value: str

    @property
    def key(self) -> Key:
        """What identifies the label: its retainer script and its code."""
        return self.project_id, self.code

    def closes(self, value: Value) -> bool:
        """Whether a value ends the label."""
        if not self.close_value:
            return not same(value, self.open_value)
        return same(value, self.close_value)


def label_rules_of(project_id: int, class_id: str, script: Iterable[Sequence[str]]) -> list[LabelRule]:
    """The rules of a retainer script: code, English label, Chinese label, open value, close value."""
    return [LabelRule(project_id, class_id, *(cell.strip() for cell in row[:5])) for row in script]


class Standing(msgspec.Struct, array_like=True):
    """The state of one label. ``opened_us``: since when it is open, UTC microseconds; None: it is closed."""

    project_id: int
    code: str
    matched: bool = False  # the last value equalled the open value
    opened_us: int | None = None


encode_labels = msgspec.msgpack.Encoder().encode
decode_labels = msgspec.msgpack.Decoder(list[Standing]).decode


class Labels:
    """The states of all labels of an object."""

    def __init__(self, standings: Iterable[Standing] = ()) -> None:
        self.standings: dict[Key, Standing] = {(each.project_id, each.code): each for each in standings}
        self._saved: bytes | None = None  # as they were made

    def is_open(self, key: Key) -> bool:
        """Whether the label is open."""
        standing = self.standings.get(key)
        return standing is not None and standing.opened_us is not None

    def note(self) -> bytes | None:
        """The states as the bytes that the store keeps with the object; None: there are none. Saves them, too."""
        self._saved = encode_labels(list(self.standings.values())) if self.standings else None
        return self._saved

    def go_back(self) -> None:
        """All is as it was when ``note`` was called last."""
        standings = decode_labels(self._saved) if self._saved is not None else ()
        self.standings = {(each.project_id, each.code): each for each in standings}

    @property
    def open_count(self) -> int:
        """How many labels are open."""
        return sum(standing.opened_us is not None for standing in self.standings.values())

    def see(self, rule: LabelRule, value: Value, time_us: int) -> int | None:
        """Takes a value. Returns when the label opened or closed, None where it stays; ``is_open`` tells which."""
        if value is None:
            return None
        standing = self.standings.get(rule.key)
        if standing is None:
            standing = self.standings[rule.key] = Standing(*rule.key)
        matched, before = same(value, rule.open_value), standing.matched
        standing.matched = matched
        if standing.opened_us is None:
            if not matched or before:
                return None
            standing.opened_us = time_us
            return time_us
        if matched or not rule.closes(value):
            return None
        return self._close(standing, time_us)

    def close(self, key: Key, time_us: int) -> int | None:
        """Closes by hand; the time of closing, None where it isn't open."""
        standing = self.standings.get(key)
        return None if standing is None else self._close(standing, time_us)

    def _close(self, standing: Standing, time_us: int) -> int | None:
        if standing.opened_us is None:
            return None
        closed_us = max(time_us, standing.opened_us)  # terminals' clocks differ
        standing.opened_us = None
        return closed_us

    def keep(self, rules: Mapping[str, Sequence[LabelRule]]) -> None:
        """Forgets closed labels that no rule of these asks for: started again, a rule looks at what it finds."""
        wanted = {rule.key for some in rules.values() for rule in some}
        for key, standing in list(self.standings.items()):
            if key not in wanted:
                standing.matched = False
                if standing.opened_us is None:
                    del self.standings[key]
