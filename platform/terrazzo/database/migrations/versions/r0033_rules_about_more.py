"""Adds what rules about terminals and objects and commands by rules need.

Fields of rules; what is open, the heartbeat; commands that wait to be handed over, and the rule in their journal.
"""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    _add_conditions()
    _add_commands()


def _add_conditions() -> None:
    for name in ("terminal_list", "tags", "group_list"):
        op.add_column("rule", sa.Column(name, sa.Text(), nullable=True))
    for name in ("minutes", "back_minutes"):
        op.add_column("rule", sa.Column(name, BIG, nullable=False, server_default="5"))
    op.add_column("rule", sa.Column("digest", sa.String(8), nullable=False, server_default="none"))
    op.add_column("rule", sa.Column("digest_at", sa.String(5), nullable=False, server_default="08:00"))
    op.add_column("rule_notice", sa.Column("noted_us", BIG, nullable=True))
    op.create_table(
        "rule_condition",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("rule_id", BIG, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("subject_id", BIG, nullable=False),
        sa.Column("since_us", BIG, nullable=False),
        sa.Column("opened_us", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule_condition")),
        sqlite_autoincrement=True,
    )
    columns = ["rule_id", "kind", "subject_id"]
    op.create_index(op.f("ix_rule_condition_rule_id_kind_subject_id"), "rule_condition", columns, unique=True)
    op.create_table(
        "heartbeat",
        sa.Column("id", BIG, autoincrement=False, nullable=False),
        sa.Column("time_us", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_heartbeat")),
    )


def _add_commands() -> None:
    for name in ("command", "command_value"):
        op.add_column("rule", sa.Column(name, sa.String(64), nullable=False, server_default=""))
    for name in ("command_objects", "schedule"):
        op.add_column("rule", sa.Column(name, sa.Text(), nullable=True))
    for name, default in (("command_expiry_s", "3600"), ("commands_per_hour", "60"), ("loop_s", "60")):
        op.add_column("rule", sa.Column(name, BIG, nullable=False, server_default=default))
    op.add_column("command", sa.Column("rule_id", BIG, nullable=True))
    op.create_table(
        "rule_command",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("rule_id", BIG, nullable=False),
        sa.Column("cause_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("command", sa.String(64), nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("noted_us", BIG, nullable=False),
        sa.Column("expires_us", BIG, nullable=False),
        sa.Column("run_us", BIG, nullable=True),
        sa.Column("sent_us", BIG, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule_command")),
        sqlite_autoincrement=True,
    )
    for columns in (["state", "id"], ["rule_id", "sent_us"], ["run_us"]):
        op.create_index(op.f(f"ix_rule_command_{'_'.join(columns)}"), "rule_command", columns)
