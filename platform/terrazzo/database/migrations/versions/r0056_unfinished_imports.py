"""Adds the journal of imports that are written in pieces, so that what is not whole is undone."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    op.create_table(
        "unfinished_import",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("batch", sa.String(32), nullable=False),
        sa.Column("entity", sa.String(32), nullable=False),
        sa.Column("record_ids", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
