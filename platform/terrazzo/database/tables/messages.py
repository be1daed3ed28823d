"""The tables of messages sent to people and other systems, their files, and the notifications that rules repeat.

Times are UTC microseconds. There are no foreign keys: messages outlive the records that they were about.
"""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG
from terrazzo.database.partial_index import where

MESSAGE = sa.Table(
    "message",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("uid", sa.String(32), nullable=False, unique=True),  # random hex; providers see it
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("project_id", BIG, nullable=False),  # of the configuration; 0: a rule's webhook
    sa.Column("object_id", BIG),
    sa.Column("rule_id", BIG),
    sa.Column("channel", sa.String(16), nullable=False),  # email | sms | android | ios | wechat | webhook
    sa.Column("recipients", sa.Text, nullable=False),  # JSON array
    sa.Column("pending", sa.Text, nullable=False),  # JSON array: recipients that it has not been sent to yet
    sa.Column("content", sa.Text, nullable=False),  # JSON object
    sa.Column("request", sa.Text, nullable=False, default=""),  # of the last attempt, secrets masked
    sa.Column("response", sa.Text, nullable=False, default=""),
    sa.Column("state", sa.String(16), nullable=False),  # queued | sending | sent | failed | unknown
    sa.Column("svc_code", sa.String(64), nullable=False, default=""),
    sa.Column("svc_msg", sa.Text, nullable=False, default=""),
    sa.Column("reason", sa.Text, nullable=False, default=""),
    sa.Column("attempts", BIG, nullable=False, default=0),
    sa.Column("created", BIG, nullable=False),
    sa.Column("next_us", BIG, nullable=False),  # the earliest time of the next attempt
    sa.Column("expires_us", BIG, nullable=False),
    sa.Column("attempted_us", BIG),
    sa.Column("ended_us", BIG),
    sa.Column("created_by", BIG, nullable=False),  # 0: the platform
    sa.Column("is_available", sa.SmallInteger, nullable=False, default=1),
    sa.Column("idempotency_key", sa.String(128)),
    sa.Index(None, "company_id", "id"),
    sa.Index(None, "company_id", "idempotency_key"),
    sa.Index(None, "project_id", "state", "next_us"),
    sa.Index("ix_message_queued", "project_id", "company_id", "next_us", **where("state = 'queued'")),
    sa.Index(None, "project_id", "attempted_us"),
    sqlite_autoincrement=True,
)

MESSAGE_FILE = sa.Table(
    "message_file",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("message_id", BIG, nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("media_type", sa.String(128), nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index(None, "message_id"),
    sqlite_autoincrement=True,
)

RULE_NOTICE = sa.Table(
    "rule_notice",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("rule_id", BIG, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),  # what happened: a kind of rules
    sa.Column("record_id", BIG, nullable=False),  # of the event or label, the terminal or object; 0: the platform
    sa.Column("object_id", BIG, nullable=False),  # 0: none
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("time_us", BIG, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # waiting | told | done
    sa.Column("told_us", BIG),  # when it was last sent
    sa.Column("again_us", BIG),  # the next repetition
    sa.Column("told", BIG, nullable=False, default=0),  # how often it was sent
    sa.Column("noted_us", BIG),  # when it was noted; null: by a version that did not write that
    sa.Index(None, "state", "again_us"),
    sa.Index(None, "rule_id", "state", "id"),
    sa.Index(None, "rule_id", "told_us"),
    sqlite_autoincrement=True,
)

RULE_CONDITION = sa.Table(
    "rule_condition",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("rule_id", BIG, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),  # offline | silent | refused | clock_off | object_...
    sa.Column("subject_id", BIG, nullable=False),  # of the terminal or the object
    sa.Column("since_us", BIG, nullable=False),  # of the condition itself: when it was last well
    sa.Column("opened_us", BIG, nullable=False),  # when the rule took note
    sa.Index(None, "rule_id", "kind", "subject_id", unique=True),
    sqlite_autoincrement=True,
)
"""What rules have told of terminals and objects and is not over yet, a row for each."""

HEARTBEAT = sa.Table(
    "heartbeat",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=False),  # 1
    sa.Column("time_us", BIG, nullable=False),  # when the platform was last known to run
)

RULE_COMMAND = sa.Table(
    "rule_command",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("rule_id", BIG, nullable=False),
    sa.Column("cause_id", BIG, nullable=False),  # the object that it happened on; 0: none, or a time has come
    sa.Column("object_id", BIG, nullable=False),  # that is commanded
    sa.Column("command", sa.String(64), nullable=False),
    sa.Column("value", sa.String(64), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # waiting | sent | refused
    sa.Column("noted_us", BIG, nullable=False),
    sa.Column("expires_us", BIG, nullable=False),
    sa.Column("run_us", BIG),  # of a schedule: the time that has come
    sa.Column("sent_us", BIG),
    sa.Column("reason", sa.Text, nullable=False, server_default=""),  # of a refused one
    sa.Column("refused_us", BIG),
    sa.Index(None, "state", "id"),
    sa.Index(None, "rule_id", "sent_us"),
    sa.Index(None, "run_us"),
    sa.Index("ix_rule_command_company_id_noted_us_id", "company_id", "noted_us", "id"),
    sa.Index("ix_rule_command_rule_id_state_id", "rule_id", "state", "id"),
    sqlite_autoincrement=True,
)
"""Commands that rules give: written with what they answer to, then handed over or refused, and kept for some days."""

MESSAGES = (MESSAGE, MESSAGE_FILE, RULE_NOTICE, RULE_CONDITION, HEARTBEAT, RULE_COMMAND)
