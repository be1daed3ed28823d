"""The journal of replays. Times are UTC microseconds; no foreign keys: it outlives the objects."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

REPLAY = sa.Table(
    "replay",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("object_id", BIG, nullable=False),
    sa.Column("start_us", BIG, nullable=False),
    sa.Column("end_us", BIG),  # null: up to now
    sa.Column("dry_run", sa.SmallInteger, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # waiting | running | done | failed | cancelled
    sa.Column("info", sa.Text, nullable=False, default=""),
    sa.Column("starts", BIG, nullable=False, default=0),
    sa.Column("records_total", BIG, nullable=False, default=0),
    sa.Column("records_done", BIG, nullable=False, default=0),
    sa.Column("records_skipped", BIG, nullable=False, default=0),
    sa.Column("position_us", BIG),
    sa.Column("mosaic_before", BIG),
    sa.Column("mosaic_after", BIG),
    sa.Column("events_before", BIG),
    sa.Column("events_after", BIG),
    sa.Column("labels_before", BIG),
    sa.Column("labels_after", BIG),
    sa.Column("created_by", BIG, nullable=False),
    sa.Column("username", sa.String(64), nullable=False),
    sa.Column("created", BIG, nullable=False),
    sa.Column("ended_us", BIG),
    sa.Index(None, "company_id", "created", "id"),
    sa.Index(None, "created", "id"),  # of all companies
    sa.Index(None, "state", "id"),
    sa.Index(None, "object_id", "state"),
    sqlite_autoincrement=True,
)
