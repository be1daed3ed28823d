"""What a kind of torture has come to: counted, kept in a file while it goes on, and told as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


class Broken(AssertionError):
    """A promise was; ``lost`` and ``doubled`` are readings."""

    def __init__(self, text: str, *, lost: int = 0, doubled: int = 0) -> None:
        super().__init__(text)
        self.lost = lost
        self.doubled = doubled


@dataclass
class Outcome:
    """Of the rounds that have been done.

    Attributes:
        acknowledged: readings for which there was a PUBACK; each was looked for afterwards.
        silent_s: the longest for which a terminal that was connected, and had published, had no PUBACK.
        ready_s: the longest from the end of a fault, or the start after it, until every part was ready.
        found: of kinds that tell more: how often each finding was made, by what was tried.
    """

    rounds: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    silent_s: float = 0.0
    ready_s: float = 0.0
    found: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, more: Outcome) -> None:
        """What further rounds have come to."""
        self.rounds += more.rounds
        self.acknowledged += more.acknowledged
        self.lost += more.lost
        self.doubled += more.doubled
        self.silent_s = max(self.silent_s, more.silent_s)
        self.ready_s = max(self.ready_s, more.ready_s)
        for what, counts in more.found.items():
            for finding, count in counts.items():
                self.count(what, finding, count)

    def count(self, what: str, finding: str, count: int = 1) -> None:
        """One more finding."""
        of_it = self.found.setdefault(what, {})
        of_it[finding] = of_it.get(finding, 0) + count

    def save(self, path: Path) -> None:
        """Whole, or as it was."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.rename(path)


def read_outcome(path: Path) -> Outcome:
    """What was saved; nothing has been done where there is no file, or one of an earlier form."""
    if not path.exists():
        return Outcome()
    try:
        return Outcome(**json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError):
        return Outcome()


def table(outcomes: Mapping[str, Outcome]) -> str:
    """A row for each kind, and below it what kinds have found that tell more."""
    lines = ["| kind | rounds | acknowledged readings | lost | doubled | longest without PUBACK, s | until ready, s |"]
    lines.append("|---|---|---|---|---|---|---|")
    for kind, each in outcomes.items():
        counts = f"{each.rounds:,} | {each.acknowledged:,} | {each.lost:,} | {each.doubled:,}"
        lines.append(f"| {kind} | {counts} | {each.silent_s:.1f} | {each.ready_s:.1f} |")
    for kind, each in outcomes.items():
        if each.found:
            lines += ["", f"| {kind} | found, and how often |", "|---|---|"]
        for what, found in sorted(each.found.items()):
            told = ", ".join(f"{finding}: {count}" for finding, count in sorted(found.items()))
            lines.append(f"| {what} | {told} |")
    return "\n".join(lines)
