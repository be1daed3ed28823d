"""A rule in the form in which events and labels are matched, and the set of all rules that are started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from terrazzo.database.entity import COMPANY
from terrazzo.domain.events.definition import severity_rank
from terrazzo.domain.happened import Happened
from terrazzo.metadata.repositories.repository import RowChange


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that is started. Empty ``objects`` or ``codes`` match everything; ``quiet_*`` are ``HH:MM`` or empty."""

    id: int
    company_id: int
    name: str
    kinds: frozenset[str]
    objects: frozenset[int]
    codes: frozenset[str]
    severity: int = 0  # the least of an event, by its place in ``SEVERITIES``; 0: any
    channel: str
    project_id: int
    recipients: tuple[str, ...]
    subject: str
    template: str
    repeat_s: int
    repeat_times: int
    window_s: int
    quiet_start: str
    quiet_end: str

    def matches(self, happened: Happened) -> bool:
        """Whether the rule has to tell of this event, opening or closing."""
        row = happened.row
        return (
            happened.kind in self.kinds
            and row["company_id"] == self.company_id
            and (not self.objects or row["object_id"] in self.objects)
            and (not self.codes or row["code"] in self.codes)
            and (not self.severity or happened.kind != "event" or row["severity"] >= self.severity)
        )


def rule_of(row: Mapping[str, Any]) -> Rule:
    """The rule that a record describes."""
    same = ("id", "name", "channel", "project_id", "subject", "template", "repeat_s", "repeat_times", "window_s")
    return Rule(
        **{name: row[name] for name in (*same, "quiet_start", "quiet_end")},
        company_id=row[COMPANY],
        kinds=frozenset(row["kinds"]),
        objects=frozenset(int(each) for each in row["object_list"] or ()),
        codes=frozenset(row["codes"] or ()),
        severity=severity_rank(row["severity"]) if row["severity"] else 0,
        recipients=tuple(row["recipients"] or ()),
    )


class ActiveRules:
    """The rules that are started, by id and by company."""

    def __init__(self) -> None:
        self._rules: dict[int, Rule] = {}
        self._by_company: dict[int, dict[int, Rule]] = {}

    def on_changed(self, changed: RowChange) -> None:
        """``RuleRepository.changes`` tells this: a rule was created, changed, started, stopped or deleted."""
        before = self._rules.pop(changed.record_id, None)
        if before is not None:
            del self._by_company[before.company_id][before.id]
        if changed.row is not None:
            self.put(changed.row)

    def put(self, row: Mapping[str, Any]) -> None:
        """Adds the rule of a record, if it is started and available."""
        if row["is_active"] and row["is_available"]:
            rule = rule_of(row)
            self._rules[rule.id] = rule
            self._by_company.setdefault(rule.company_id, {})[rule.id] = rule

    def get(self, rule_id: int) -> Rule | None:
        """The rule of this id, while it is started."""
        return self._rules.get(rule_id)

    def matching(self, happened: Happened) -> list[Rule]:
        """The rules that have to tell of this event, opening or closing."""
        rules = self._by_company.get(happened.row["company_id"])
        return [rule for rule in rules.values() if rule.matches(happened)] if rules else []
