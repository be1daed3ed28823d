"""Adds handovers of shifts: what was open and done, and what whoever leaves has to say."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    op.create_table(
        "handover",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("username", sa.String(64), nullable=False),
        sa.Column("since", BIG, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("found", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_handover_company_id_created_id", "handover", ["company_id", "created", "id"])
