"""Adds what terminals' connections did, a row for each terminal and day on which they did something."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    op.create_table(
        "presence_day",
        sa.Column("terminal_id", BIG, primary_key=True, autoincrement=False),
        sa.Column("day", BIG, primary_key=True, autoincrement=False),
        sa.Column("log", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("terminal_id", "day", name="pk_presence_day"),
    )
    op.create_index("ix_presence_day_day_terminal_id", "presence_day", ["day", "terminal_id"])
