"""Creates the tables of events and labels."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create_event()
    _create_event_comment()
    _create_label()
    _create_effect_mark()


def _create_event() -> None:
    op.create_table(
        "event",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("terminal_id", sa.String(length=64), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("label_en", sa.Text(), nullable=False),
        sa.Column("label_cn", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("extension_key", sa.Text(), nullable=False),
        sa.Column("extension_value", sa.Text(), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("acknowledged_by", BIG, nullable=True),
        sa.Column("acknowledged_at", BIG, nullable=True),
        sa.Column("cleared_by", BIG, nullable=True),
        sa.Column("cleared_at", BIG, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_event_company_id_created_id"), "event", ["company_id", "created", "id"])
    op.create_index(op.f("ix_event_company_id_id"), "event", ["company_id", "id"])
    op.create_index(op.f("ix_event_created_id"), "event", ["created", "id"])
    op.create_index(op.f("ix_event_object_id_created_id"), "event", ["object_id", "created", "id"])


def _create_event_comment() -> None:
    op.create_table(
        "event_comment",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("event_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("username", sa.String(length=64), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_comment")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_event_comment_event_id_id"), "event_comment", ["event_id", "id"])


def _create_label() -> None:
    op.create_table(
        "label",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("terminal_id", sa.String(length=64), nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("class_id", sa.String(length=64), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("label_en", sa.Text(), nullable=False),
        sa.Column("label_cn", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("opened_at", BIG, nullable=False),
        sa.Column("close_at", BIG, nullable=True),
        sa.Column("by_hand", sa.SmallInteger(), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_label_company_id_opened_at_id"), "label", ["company_id", "opened_at", "id"])
    op.create_index(op.f("ix_label_company_id_close_at_id"), "label", ["company_id", "close_at", "id"])
    op.create_index(op.f("ix_label_company_id_id"), "label", ["company_id", "id"])
    op.create_index(op.f("ix_label_opened_at_id"), "label", ["opened_at", "id"])
    op.create_index(op.f("ix_label_close_at_id"), "label", ["close_at", "id"])
    op.create_index(op.f("ix_label_object_id_close_at"), "label", ["object_id", "close_at"])


def _create_effect_mark() -> None:
    op.create_table(
        "effect_mark",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_effect_mark")),
    )
