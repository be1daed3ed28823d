"""What rules have taken note of and is not over yet, in memory. Times in UTC microseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

Subject = int
"""A terminal by its record's id, an object by its id with a minus."""


class ConditionKey(NamedTuple):
    """Which condition of what, by which rule."""

    rule_id: int
    kind: str
    subject: Subject


class OpenCondition(msgspec.Struct):
    """A condition that is not over: ``well_us`` since when it may be, ``last_us`` its last sign (a refusal)."""

    company_id: int
    since_us: int
    opened_us: int
    last_us: int
    well_us: int | None = None


class OpenConditions:
    """All of them, by rule and by subject."""

    def __init__(self) -> None:
        self._by_rule: dict[int, dict[ConditionKey, OpenCondition]] = {}
        self._of_subject: dict[Subject, dict[ConditionKey, None]] = {}
        self._of_company: Counter[int] = Counter()
        self.count = 0

    def get(self, key: ConditionKey) -> OpenCondition | None:
        """The condition with this key, if it is open."""
        found = self._by_rule.get(key.rule_id)
        return None if found is None else found.get(key)

    def put(self, key: ConditionKey, condition: OpenCondition) -> None:
        """A condition is open."""
        self.drop(key)
        self._by_rule.setdefault(key.rule_id, {})[key] = condition
        self._of_subject.setdefault(key.subject, {})[key] = None
        self._of_company[condition.company_id] += 1
        self.count += 1

    def drop(self, key: ConditionKey) -> None:
        """A condition is over; unknown ones are ignored."""
        found = self._by_rule.get(key.rule_id, {})
        condition = found.pop(key, None)
        if condition is None:
            return
        if not found:
            del self._by_rule[key.rule_id]
        of_subject = self._of_subject[key.subject]
        del of_subject[key]
        if not of_subject:
            del self._of_subject[key.subject]
        self._of_company[condition.company_id] -= 1
        self.count -= 1

    def rules(self) -> list[int]:
        """The ids of the rules that have any."""
        return [*self._by_rule]

    def of_rule(self, rule_id: int) -> Mapping[ConditionKey, OpenCondition]:
        """Those of a rule."""
        return self._by_rule.get(rule_id, {})

    def of_subject(self, subject: Subject) -> Iterator[ConditionKey]:
        """The keys of those of a terminal or object."""
        yield from [*self._of_subject.get(subject, ())]

    def has(self, subject: Subject) -> bool:
        """Whether there is any of a terminal or object."""
        return subject in self._of_subject

    def of_company(self, company_id: int) -> int:
        """How many a company has."""
        return self._of_company[company_id]
