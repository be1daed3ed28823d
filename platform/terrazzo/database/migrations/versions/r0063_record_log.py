"""Adds what happened to records that no other table tells; indexes of service and offline records by time."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0063"
down_revision = "0062"


def upgrade() -> None:
    op.create_table(
        "record_log",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("entity", sa.String(32), nullable=False),
        sa.Column("record_id", BIG, nullable=False),
        sa.Column("time", BIG, nullable=False),
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column("username", sa.String(64), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_record_log_entity_record_id_time_id", "record_log", ["entity", "record_id", "time", "id"])
    op.create_index("ix_record_log_time", "record_log", ["time"])
    op.create_index("ix_record_log_company_id_time", "record_log", ["company_id", "time"])
    for table, time in (("service", "service_at"), ("collectos", "collect_at")):
        op.create_index(f"ix_{table}_object_id_{time}_id", table, ["object_id", time, "id"])
