"""Creates messages, their files, rules and rule notices."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_message()
    _create_message_file()
    _create_rule_notice()
    _create_rule()


def _create_message() -> None:
    op.create_table(
        "message",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=32), nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=True),
        sa.Column("rule_id", BIG, nullable=True),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("pending", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("svc_code", sa.String(length=64), nullable=False),
        sa.Column("svc_msg", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", BIG, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("next_us", BIG, nullable=False),
        sa.Column("expires_us", BIG, nullable=False),
        sa.Column("attempted_us", BIG, nullable=True),
        sa.Column("ended_us", BIG, nullable=True),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message")),
        sa.UniqueConstraint("uid", name=op.f("uq_message_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_message_company_id_id"), "message", ["company_id", "id"])
    op.create_index(op.f("ix_message_company_id_idempotency_key"), "message", ["company_id", "idempotency_key"])
    op.create_index(op.f("ix_message_project_id_attempted_us"), "message", ["project_id", "attempted_us"])
    op.create_index(op.f("ix_message_project_id_state_next_us"), "message", ["project_id", "state", "next_us"])


def _create_message_file() -> None:
    op.create_table(
        "message_file",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("message_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("media_type", sa.String(length=128), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message_file")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_message_file_message_id"), "message_file", ["message_id"])


def _create_rule_notice() -> None:
    op.create_table(
        "rule_notice",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("rule_id", BIG, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("record_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("time_us", BIG, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("told_us", BIG, nullable=True),
        sa.Column("again_us", BIG, nullable=True),
        sa.Column("told", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule_notice")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_rule_notice_rule_id_state_id"), "rule_notice", ["rule_id", "state", "id"])
    op.create_index(op.f("ix_rule_notice_rule_id_told_us"), "rule_notice", ["rule_id", "told_us"])
    op.create_index(op.f("ix_rule_notice_state_again_us"), "rule_notice", ["state", "again_us"])


def _create_rule() -> None:
    op.create_table(
        "rule",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("is_active", sa.SmallInteger(), nullable=False),
        sa.Column("object_list", sa.Text(), nullable=True),
        sa.Column("codes", sa.Text(), nullable=True),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("recipients", sa.Text(), nullable=True),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("template", sa.String(length=4096), nullable=False),
        sa.Column("url", sa.String(length=1024), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("repeat_s", BIG, nullable=False),
        sa.Column("repeat_times", BIG, nullable=False),
        sa.Column("window_s", BIG, nullable=False),
        sa.Column("quiet_start", sa.String(length=5), nullable=False),
        sa.Column("quiet_end", sa.String(length=5), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"], ["company.id"], name=op.f("fk_rule_permission_company_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule")),
        sa.UniqueConstraint("uid", name=op.f("uq_rule_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_rule_name_id"), "rule", ["name", "id"])
    op.create_index(op.f("ix_rule_permission_company_id_id"), "rule", ["permission_company_id", "id"])
    op.create_index(op.f("ix_rule_permission_company_id_name_id"), "rule", ["permission_company_id", "name", "id"])
