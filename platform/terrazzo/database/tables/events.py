"""The tables ``event`` and ``label``, comments on events, and how far each store's effects have been written.

Times are UTC microseconds. There are no foreign keys: events outlive the records that they are about.
"""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG
from terrazzo.database.partial_index import where

OPEN_STATES = ("raised", "acknowledged")
"""States of an event that nobody and nothing has cleared."""

EVENT = sa.Table(
    "event",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("object_id", BIG, nullable=False),
    sa.Column("terminal_id", sa.String(64), nullable=False),  # whose message raised it
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("label_en", sa.Text, nullable=False),
    sa.Column("label_cn", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("extension_key", sa.Text, nullable=False),  # the condition
    sa.Column("extension_value", sa.Text, nullable=False),  # the value that met it
    sa.Column("reference", sa.String(64), nullable=False, default=""),
    sa.Column("created", BIG, nullable=False),  # the time of the message
    sa.Column("is_available", sa.SmallInteger, nullable=False, default=1),
    sa.Column("state", sa.String(16), nullable=False, default="raised"),  # raised | acknowledged | cleared
    sa.Column("acknowledged_by", BIG),  # a user's id
    sa.Column("acknowledged_at", BIG),
    sa.Column("cleared_by", BIG),
    sa.Column("cleared_at", BIG),
    sa.Column("severity", sa.SmallInteger, nullable=False, default=2),  # when it was raised: 1 info .. 5 critical
    sa.Column("cleared_cause", sa.String(16), nullable=False, default=""),  # user | condition | event | time
    sa.Column("clear_at", BIG),  # when it is cleared if it is still open
    sa.Column("shelved_until", BIG),  # nobody is reminded of it before
    sa.Column("shelved_by", BIG),
    sa.Index(None, "company_id", "created", "id"),
    sa.Index(None, "company_id", "id"),
    sa.Index(None, "created", "id"),  # of all companies
    sa.Index(None, "object_id", "created", "id"),
    sa.Index(None, "company_id", "severity", "id"),
    sa.Index(None, "object_id", "code", "state"),
    sa.Index(None, "clear_at", "id"),
    sqlite_autoincrement=True,
)
sa.Index("ix_event_raised", EVENT.c.company_id, EVENT.c.severity, EVENT.c.id, **where("state = 'raised'"))
sa.Index("ix_event_raised_of_all", EVENT.c.severity, EVENT.c.id, **where("state = 'raised'"))
for _done in ("acknowledged_at", "cleared_at"):  # what a shift did, whenever it was raised
    _is_done = where(f"{_done} IS NOT NULL")
    sa.Index(f"ix_event_company_id_{_done}_id", EVENT.c.company_id, EVENT.c[_done], EVENT.c.id, **_is_done)
    sa.Index(f"ix_event_{_done}_id", EVENT.c[_done], EVENT.c.id, **_is_done)  # of all companies

EVENT_COMMENT = sa.Table(
    "event_comment",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("event_id", BIG, nullable=False),
    sa.Column("user_id", BIG, nullable=False),
    sa.Column("username", sa.String(64), nullable=False),
    sa.Column("created", BIG, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index(None, "event_id", "id"),
    sqlite_autoincrement=True,
)

LABEL = sa.Table(
    "label",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("object_id", BIG, nullable=False),
    sa.Column("terminal_id", sa.String(64), nullable=False),  # whose message opened it
    sa.Column("project_id", BIG, nullable=False),  # the retainer script's id
    sa.Column("class_id", sa.String(64), nullable=False),  # and its uid
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("label_en", sa.Text, nullable=False),
    sa.Column("label_cn", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("opened_at", BIG, nullable=False),
    sa.Column("close_at", BIG),  # null: open
    sa.Column("by_hand", sa.SmallInteger, nullable=False, default=0),
    sa.Column("reference", sa.String(64), nullable=False, default=""),
    sa.Column("created", BIG, nullable=False),
    sa.Column("is_available", sa.SmallInteger, nullable=False, default=1),
    sa.Index(None, "company_id", "opened_at", "id"),
    sa.Index(None, "company_id", "close_at", "id"),
    sa.Index(None, "opened_at", "id"),  # of all companies
    sa.Index(None, "close_at", "id"),
    sa.Index(None, "company_id", "id"),
    sa.Index(None, "object_id", "close_at"),
    sa.Index(None, "object_id", "opened_at", "id"),
    sqlite_autoincrement=True,
)

sa.Index("ix_label_open", LABEL.c.company_id, LABEL.c.opened_at, **where("close_at IS NULL"))
sa.Index("ix_label_open_of_all", LABEL.c.id, **where("close_at IS NULL"))

EFFECT_MARK = sa.Table(
    "effect_mark",
    METADATA,
    sa.Column("name", sa.String(64), primary_key=True),  # of the store that the effects are noted in
    sa.Column("seq", BIG, nullable=False),  # number of the last effects that have been written
)

EVENT_TABLES = (EVENT, EVENT_COMMENT, LABEL, EFFECT_MARK)

HANDOVER = sa.Table(
    "handover",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("user_id", BIG, nullable=False),
    sa.Column("username", sa.String(64), nullable=False),  # as it was
    sa.Column("since", BIG, nullable=False),  # UTC microseconds
    sa.Column("created", BIG, nullable=False),
    sa.Column("notes", sa.Text, nullable=False),
    sa.Column("found", sa.Text, nullable=False),  # JSON: what was open and done
    sa.Index(None, "company_id", "created", "id"),
    sqlite_autoincrement=True,
)
