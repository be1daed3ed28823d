"""Runs of schedules that the platform has missed: noted, logged, told, and not made up for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.database import Database
from terrazzo.database.tables.messages import RULE_NOTICE
from terrazzo.domain.actor import SYSTEM
from terrazzo.rules.notice import MISSED, condition_notice
from terrazzo.rules.rule import Rule
from terrazzo.rules.schedule import runs_between
from terrazzo.times import format_spaced

_MOST = 1_000  # runs of a rule that are counted
_SHOWN = 3


class MissedRuns(NamedTuple):
    """Runs by rule (id), and what the audit log and people are told."""

    runs: Mapping[int, Sequence[int]]
    entries: Sequence[AuditEntry]
    notices: Sequence[dict[str, Any]]

    async def write(self, database: Database, now: int) -> None:
        """Writes entries and notices."""
        async with database.writing() as connection:
            await write_entries(connection, self.entries, now)
            if self.notices:
                await connection.execute(RULE_NOTICE.insert(), list(self.notices))


def find_missed(
    rules: Sequence[Rule], done: Collection[tuple[int, int]], after_us: int, now: int, zone: tzinfo
) -> MissedRuns:
    """The runs after a time and until now (UTC microseconds), without those that were done."""
    runs: dict[int, Sequence[int]] = {}
    entries, notices = [], []
    for rule in rules:
        found = runs_between(rule.runs, after_us, now, zone, _MOST)
        missed = [run_us for run_us in found if (rule.id, run_us) not in done]
        if not missed:
            continue
        runs[rule.id] = missed
        text = _text(missed, zone)
        entries.append(_entry(rule, text))
        if rule.tells:
            notices.append(_notice(rule, text, missed, now))
    return MissedRuns(runs, entries, notices)


def _text(missed: Sequence[int], zone: tzinfo) -> str:
    shown = ", ".join(format_spaced(each, zone) for each in missed[:_SHOWN])
    return f"{shown} and {len(missed) - _SHOWN} more" if len(missed) > _SHOWN else shown


def _entry(rule: Rule, text: str) -> AuditEntry:
    return AuditEntry(
        actor=SYSTEM,
        company_id=rule.company_id,
        action="run_missed",
        entity="rule",
        record_id=rule.id,
        uid=str(rule.id),
        after={"schedule": text},
    )


def _notice(rule: Rule, text: str, missed: Sequence[int], now: int) -> dict[str, Any]:
    times = {"since_us": missed[0], "until_us": missed[-1], "now": now}
    return condition_notice(rule, MISSED, record_id=0, object_id=0, code=rule.name, text=text, **times)
