"""A rule in the form in which what happens is matched, and the set of all rules that are started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from terrazzo.database.entity import COMPANY
from terrazzo.domain.events.definition import severity_rank
from terrazzo.domain.happened import Happened
from terrazzo.metadata.definitions.rules import BACK, LASTING, NOBODY, OBJECT_KINDS, OUTAGE
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.rules.schedule import Run, runs_of

MINUTE_US = 60 * 1_000_000

_SAME = (
    "id",
    "name",
    "channel",
    "project_id",
    "subject",
    "template",
    "repeat_s",
    "repeat_times",
    "window_s",
    "quiet_start",
    "quiet_end",
    "minutes",
    "back_minutes",
    "digest",
    "digest_at",
    "command",
    "command_value",
    "command_expiry_s",
    "commands_per_hour",
    "loop_s",
)
_TEXTS = ("codes", "kinds", "terminal_list", "tags")
_IDS = ("object_list", "group_list", "command_objects")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that is started. Empty ``objects`` or ``codes`` match everything; ``quiet_*`` are ``HH:MM`` or empty.

    ``minutes`` and ``back_minutes``: how long a terminal or object has to be away, and well again.
    """

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
    minutes: int
    back_minutes: int
    digest: str
    digest_at: str
    terminals: frozenset[str]
    tags: frozenset[str]
    groups: frozenset[int]
    command: str
    command_value: str
    command_objects: frozenset[int]
    command_expiry_s: int
    commands_per_hour: int
    loop_s: int
    runs: tuple[Run, ...]  # of its schedule

    @property
    def tells(self) -> bool:
        """Whether it tells anybody, and does not only give commands."""
        return self.channel != NOBODY

    @property
    def commands(self) -> bool:
        """Whether it gives a command when something opens."""
        return bool(self.command) and not self.runs

    @property
    def lasting(self) -> list[str]:
        """Its kinds that begin and end, of terminals or of objects."""
        return [kind for kind in LASTING if kind in self.kinds]

    @property
    def is_of_objects(self) -> bool:
        """Whether its subjects are objects."""
        return not self.kinds.isdisjoint(OBJECT_KINDS)

    @property
    def is_about_more(self) -> bool:
        """Whether it is about more than events and labels."""
        return OUTAGE in self.kinds or bool(self.lasting)

    @property
    def tells_back(self) -> bool:
        """Whether it tells when something is over."""
        return BACK in self.kinds

    @property
    def away_us(self) -> int:
        """How long a terminal or object has to be away, in microseconds."""
        return self.minutes * MINUTE_US

    @property
    def back_us(self) -> int:
        """How long it has to be well again, in microseconds."""
        return self.back_minutes * MINUTE_US

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
    texts = {name: frozenset(row[name] or ()) for name in _TEXTS}
    ids = {name: frozenset(int(each) for each in row[name] or ()) for name in _IDS}
    return Rule(
        **{name: row[name] for name in _SAME},
        company_id=row[COMPANY],
        kinds=texts["kinds"],
        objects=ids["object_list"],
        codes=texts["codes"],
        severity=severity_rank(row["severity"]) if row["severity"] else 0,
        recipients=tuple(row["recipients"] or ()),
        terminals=texts["terminal_list"],
        tags=texts["tags"],
        groups=ids["group_list"],
        command_objects=ids["command_objects"],
        runs=runs_of(row["schedule"] or ()),
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

    def every(self) -> Iterable[Rule]:
        """All rules that are started."""
        return self._rules.values()

    def of_company(self, company_id: int) -> Iterable[Rule]:
        """Those of a company."""
        return self._by_company.get(company_id, {}).values()

    def matching(self, happened: Happened) -> list[Rule]:
        """The rules that have to tell of this event, opening or closing."""
        rules = self._by_company.get(happened.row["company_id"])
        return [rule for rule in rules.values() if rule.matches(happened)] if rules else []
