"""``check``: what is wrong with what a run of several nodes has left behind. Pure; tested by planted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from cluster.cluster_evidence import Evidence, Published, Replica, Report, Stored, expected_effects


class Finding(NamedTuple):
    """Something that must not be. ``kind`` is one of ``KINDS``."""

    kind: str
    where: str
    what: str


KINDS = {
    "lost": "an acknowledged publish is not stored",
    "twice": "a publish is stored twice",
    "unknown": "a publish is stored that nobody has sent",
    "order": "a terminal's publishes are stored in another order than they were sent in",
    "replicas": "two replicas differ",
    "stale": "a frame of an earlier leader stands in the log behind one of a later leader",
    "gap": "the log lacks a frame",
    "events": "an event is missing, there twice, or follows from nothing",
    "labels": "a label is missing, there twice, or follows from nothing",
    "delivered": "a command was told delivered, and its terminal has not acknowledged it",
    "again": "a command was sent again after it was told delivered",
    "unsaid": "a command was told delivered, and later something else",
    "command": "a command that was taken is not in the journal, is there twice, or never reached its terminal",
}


@dataclass(slots=True)
class Verdict:
    """What was found, and how much was looked at."""

    findings: list[Finding] = field(default_factory=list)
    published: int = 0
    acknowledged: int = 0
    stored: int = 0
    repeated: int = 0  # numbers that are stored more than once: sent again as their PUBACK was lost
    late: int = 0  # stored, without a PUBACK, behind what a later connection of the terminal has sent
    commands: int = 0
    delivered: int = 0
    sent_again: int = 0  # commands that came to their terminal more than once

    def summary(self) -> str:
        """In one line."""
        return (
            f"{self.published:,} publishes, {self.acknowledged:,} acknowledged, {self.stored:,} stored,"
            f" {self.repeated:,} sent again and stored again, {self.late:,} stored late without a PUBACK;"
            f" {self.commands:,} commands, {self.delivered:,} delivered, {self.sent_again:,} came more than once;"
            f" {len(self.findings):,} findings"
        )


def check(evidence: Evidence) -> Verdict:
    """Looks at everything, each replica by itself and all together."""
    verdict = Verdict()
    for node, replica in evidence.replicas.items():
        for uid, published in evidence.published.items():
            verdict.findings += _check_reports(f"{node} {uid}", published, replica.reports.get(uid, []))
    for uid, published in evidence.published.items():
        verdict.findings += _check_reports(f"log {uid}", published, evidence.logged.get(uid, []))
    verdict.findings += _check_replicas(evidence.replicas)
    verdict.findings += _check_frames(evidence)
    verdict.findings += _check_effects(evidence)
    verdict.findings += _check_commands(evidence)
    _count(verdict, evidence)
    return verdict


def _check_reports(where: str, published: list[Published], stored: list[Stored]) -> Iterator[Finding]:
    known = {each.report: each for each in published}
    counts = Counter(each.report for each in stored)
    for each in published:
        if each.acknowledged is not None and not counts[each.report]:
            yield Finding("lost", where, f"{each.report}")
    for report, count in counts.items():
        if report not in known:
            yield Finding("unknown", where, f"{report}")
        elif count > 1:
            yield Finding("twice", where, f"{report}: {count} times")
    yield from _check_order(where, known, [each.report for each in stored if each.report in known])


def _check_order(where: str, known: dict[Report, Published], stored: list[Report]) -> Iterator[Finding]:
    """Within a connection as sent; and what was acknowledged before another was sent stands before it."""
    last: dict[int, Published] = {}
    for report in stored:
        this, before = known[report], last.get(report.connection)
        if before is not None and this.sent < before.sent:
            yield Finding("order", where, f"{report} behind {before.report} of one connection")
        last[report.connection] = this
    earliest: Published | None = None  # acknowledged, of those that stand further behind
    for report in reversed(stored):
        this = known[report]
        if earliest is not None and earliest.acknowledged is not None and earliest.acknowledged < this.sent:
            yield Finding("order", where, f"{earliest.report} behind {report}, which was sent after its PUBACK")
        if this.acknowledged is not None and (
            earliest is None or earliest.acknowledged is None or this.acknowledged < earliest.acknowledged
        ):
            earliest = this


def _check_replicas(replicas: dict[str, Replica]) -> Iterator[Finding]:
    names = list(replicas)
    for first, second in pairwise(names):
        one, other = replicas[first].checksums, replicas[second].checksums
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                yield Finding("replicas", f"{first} {second}", f"{name}: {one.get(name)} and {other.get(name)}")


def _check_frames(evidence: Evidence) -> Iterator[Finding]:
    """Each frame follows the one before, and no epoch comes back. What was trimmed is gone from the beginning."""
    for before, this in pairwise(evidence.frames):
        if this.sequence != before.sequence + 1:
            yield Finding("gap", "log", f"frame {this.sequence} behind {before.sequence}")
        if this.epoch < before.epoch:
            yield Finding("stale", "log", f"frame {this.sequence} of epoch {this.epoch} behind epoch {before.epoch}")


def _check_effects(evidence: Evidence) -> Iterator[Finding]:
    """Against what follows from the reports in the log's order: what was sent again counts as often as it is there."""
    for uid in evidence.published:
        events, labels = expected_effects(evidence.logged.get(uid, []))
        found_events, found_labels = evidence.events.get(uid, []), evidence.labels.get(uid, [])
        if Counter(found_events) != Counter(events):
            yield Finding("events", uid, _difference(Counter(events), Counter(found_events)))
        if Counter(found_labels) != Counter(labels):
            yield Finding("labels", uid, _difference(Counter(labels), Counter(found_labels)))


def _difference(expected: Counter[object], found: Counter[object]) -> str:
    missing, surplus = expected - found, found - expected
    return f"missing {list(missing.elements())[:3]}, surplus {list(surplus.elements())[:3]}"


def _check_commands(evidence: Evidence) -> Iterator[Finding]:
    for value, uid in evidence.given.items():
        if value not in evidence.commands:
            yield Finding("command", uid, f"{value} was taken and is not in the journal")
    for value, record in evidence.commands.items():
        taken = evidence.taken.get(value)
        acknowledged = min(taken.acknowledged) if taken is not None and taken.acknowledged else None
        if record.rows != 1:
            yield Finding("command", record.uid, f"{value} is in the journal {record.rows} times")
        told = [moment for moment, state in record.states if state == "delivered"]
        if not told:
            yield Finding("command", record.uid, f"{value} was never told delivered, but {record.states[-1:]}")
            continue
        first = min(told)
        if acknowledged is None or acknowledged > first:
            yield Finding("delivered", record.uid, f"{value}: told at {first}, acknowledged at {acknowledged}")
        if taken is not None and max(taken.came) > first:
            yield Finding("again", record.uid, f"{value}: told delivered at {first}, came at {max(taken.came)}")
        if any(moment > first and state != "delivered" for moment, state in record.states):
            yield Finding("unsaid", record.uid, f"{value}: {record.states}")


def _count(verdict: Verdict, evidence: Evidence) -> None:
    verdict.published = sum(map(len, evidence.published.values()))
    verdict.acknowledged = sum(each.acknowledged is not None for all_ in evidence.published.values() for each in all_)
    verdict.commands = len(evidence.commands)
    verdict.delivered = sum(
        any(state == "delivered" for _, state in each.states) for each in evidence.commands.values()
    )
    verdict.sent_again = sum(len(each.came) > 1 for each in evidence.taken.values())
    verdict.stored = sum(map(len, evidence.logged.values()))
    for uid, stored in evidence.logged.items():
        numbers = Counter(each.report.number for each in stored)
        verdict.repeated += sum(count > 1 for count in numbers.values())
        newest = -1
        acknowledged = {each.report for each in evidence.published.get(uid, []) if each.acknowledged is not None}
        for each in stored:
            verdict.late += each.report.connection < newest and each.report not in acknowledged
            newest = max(newest, each.report.connection)
