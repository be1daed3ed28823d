"""The tables beside the registry's entities: links, the journal of commands, revoked tokens, change log, audit log, and
what happened to records that no other table tells.
"""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

OBJECT_TERMINAL = sa.Table(
    "object_terminal",
    METADATA,
    sa.Column("object_id", BIG, sa.ForeignKey("object.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    sa.Column("terminal_id", BIG, sa.ForeignKey("terminal.id", ondelete="RESTRICT"), primary_key=True),
    sa.Column("position", BIG, nullable=False),
    sa.Index(None, "terminal_id"),
)

TERMINAL_TAG = sa.Table(
    "terminal_tag",
    METADATA,
    sa.Column("tag", sa.String(32), primary_key=True),
    sa.Column("terminal_id", BIG, sa.ForeignKey("terminal.id", ondelete="CASCADE"), primary_key=True),
    sa.Index(None, "terminal_id"),
)

OUT_OF_SERVICE = sa.Table(
    "out_of_service",
    METADATA,
    sa.Column("terminal_id", BIG, sa.ForeignKey("terminal.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("since_us", BIG, nullable=False),
    sa.Column("until_us", BIG, nullable=False),
    sa.Column("reason", sa.String(255), nullable=False),
    sa.Column("user_id", BIG, nullable=False),
    sa.Column("username", sa.String(64), nullable=False),  # as it was
    sa.Index(None, "until_us"),
)

COMMAND = sa.Table(
    "command",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("uid", sa.String(32), nullable=False, unique=True),  # random hex; travels as Correlation Data
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("terminal_id", sa.String(64), nullable=False),  # the terminal's uid: the journal outlives the record
    sa.Column("object_id", BIG),
    sa.Column("command", sa.String(64), nullable=False),
    sa.Column("value", sa.Text, nullable=False, default=""),
    sa.Column("payload", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # queued | sent | delivered | answered | expired | failed
    sa.Column("reason", sa.Text, nullable=False, default=""),
    sa.Column("queued_us", BIG, nullable=False),
    sa.Column("sent_us", BIG),
    sa.Column("delivered_us", BIG),
    sa.Column("answered_us", BIG),
    sa.Column("ended_us", BIG),
    sa.Column("expires_us", BIG, nullable=False),
    sa.Column("answer", sa.Text),
    sa.Column("created_by", BIG, nullable=False),
    sa.Column("idempotency_key", sa.String(128)),
    sa.Column("rule_id", BIG),  # of the rule that gave it
    sa.Index(None, "terminal_id", "state", "id"),
    sa.Index(None, "company_id", "id"),
    sa.Index(None, "state", "expires_us"),
    sa.Index(None, "company_id", "idempotency_key"),
    sa.Index(None, "company_id", "state", "expires_us"),
    sa.Index(None, "object_id", "queued_us", "id"),
    sqlite_autoincrement=True,
)

CAMPAIGN_TERMINAL = sa.Table(
    "campaign_terminal",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("campaign_id", BIG, sa.ForeignKey("campaign.id", ondelete="CASCADE"), nullable=False),
    sa.Column("terminal_id", sa.String(64), nullable=False),  # the terminal's uid: the campaign outlives the record
    sa.Column("wave", BIG, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # pending | sent | downloading | done | failed
    sa.Column("reason", sa.String(255), nullable=False),
    sa.Column("version", sa.String(64), nullable=False),  # the last that was reported
    sa.Column("attempts", BIG, nullable=False),
    sa.Column("failures", BIG, nullable=False),
    sa.Column("command_uid", sa.String(32), nullable=False),  # of the present attempt
    sa.Column("sent_us", BIG),
    sa.Column("downloading_us", BIG),
    sa.Column("ended_us", BIG),
    sa.Column("deadline_us", BIG),
    sa.UniqueConstraint("campaign_id", "terminal_id"),
    sa.Index(None, "campaign_id", "state", "id"),
    sa.Index(None, "campaign_id", "id"),
    sqlite_autoincrement=True,
)

FORMER_TERMINAL = sa.Table(
    "former_terminal",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("terminal_id", BIG, unique=True),  # the deleted record's; null: nobody knows
    sa.Column("company_id", BIG),
    sa.Column("uid", sa.String(64), nullable=False),
    sa.Column("series", sa.String(96), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("type", sa.String(16), nullable=False),
    sa.Column("created", BIG),
    sa.Column("deleted", BIG, nullable=False),
    sa.Column("purged", BIG),
    sa.Index(None, "uid"),
    sa.Index(None, "company_id", "id"),
    sa.Index(None, "purged", "deleted"),
    sqlite_autoincrement=True,
)

REVOKED_TOKEN = sa.Table(
    "revoked_token",
    METADATA,
    sa.Column("jti", sa.String(96), primary_key=True),
    sa.Column("expires_us", BIG, nullable=False),
    sa.Index(None, "expires_us"),
)

CHANGE = sa.Table(
    "change",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("entity", sa.String(32), nullable=False),
    sa.Column("record_id", BIG, nullable=False),
    sa.Column("uid", sa.String(96), nullable=False),
    sa.Column("changed_us", BIG, nullable=False),
    sa.Column("origin", sa.String(16)),  # the process that made it; null: a version that didn't say
    sa.Index(None, "changed_us"),
    sqlite_autoincrement=True,
)

AUDIT = sa.Table(
    "audit",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("time", BIG, nullable=False),
    sa.Column("company_id", BIG),  # whose the record is; no foreign keys: the log outlives the records
    sa.Column("user_id", BIG, nullable=False),  # 0: the platform
    sa.Column("username", sa.String(64), nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("entity", sa.String(32), nullable=False),
    sa.Column("record_id", BIG),
    sa.Column("uid", sa.String(96), nullable=False),
    sa.Column("before", sa.Text),  # JSON objects of the fields that changed
    sa.Column("after", sa.Text),
    sa.Column("batch", sa.String(16)),  # what was done at once has the same; null: by itself
    sa.Index(None, "time"),
    sa.Index(None, "company_id", "id"),
    sa.Index(None, "company_id", "time"),
    sa.Index(None, "uid", "company_id", "id"),
    sa.Index(None, "username", "company_id", "id"),
    sa.Index(None, "batch"),
    sqlite_autoincrement=True,
)

RECORD_LOG = sa.Table(
    "record_log",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("entity", sa.String(32), nullable=False),  # file | terminal; no foreign keys: it outlives the records
    sa.Column("record_id", BIG, nullable=False),
    sa.Column("time", BIG, nullable=False),
    sa.Column("what", sa.String(16), nullable=False),  # attached | removed; set | ended
    sa.Column("value", sa.Text, nullable=False),  # the file's name; why the terminal is, or was, out of service
    sa.Column("uid", sa.String(64), nullable=False),  # the terminal's
    sa.Column("username", sa.String(64), nullable=False),  # as it was
    sa.Index(None, "entity", "record_id", "time", "id"),
    sa.Index(None, "time"),
    sa.Index(None, "company_id", "time"),
    sqlite_autoincrement=True,
)
