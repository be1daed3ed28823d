"""A notice: one event, or one opening or closing of a label, that a rule has to tell of."""

from __future__ import annotations

from typing import Any

import msgspec

from terrazzo.domain.happened import Happened
from terrazzo.rules.rule import Rule

WAITING, TOLD, DONE = "waiting", "told", "done"
"""States of a notice: not told yet; told, and to be repeated while it is open; nothing more to tell."""

_MOMENTS = {"event": "created", "opened": "opened_at", "closed": "close_at"}


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``rule_notice``: what happened (``record_id`` of the event or label), and how often it was told."""

    id: int
    rule_id: int
    kind: str
    record_id: int
    object_id: int
    code: str
    label: str
    value: str
    time_us: int
    told: int  # times, the present one too


def notice_row(rule: Rule, happened: Happened) -> dict[str, Any]:
    """The values of a new row of ``rule_notice``."""
    row = happened.row
    return {
        "company_id": rule.company_id,
        "rule_id": rule.id,
        "kind": happened.kind,
        "record_id": row["id"],
        "object_id": row["object_id"],
        "code": row["code"],
        "label": row["label_en"] or row["label_cn"] or row["code"],
        "value": row["value"],
        "time_us": row[_MOMENTS[happened.kind]],
        "state": WAITING,
        "told": 0,
    }
