"""Adds the terminals that are out of service: until when, why, and who said so."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0051"
down_revision = "0044"


def upgrade() -> None:
    op.create_table(
        "out_of_service",
        sa.Column("terminal_id", BIG, primary_key=True),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("since_us", BIG, nullable=False),
        sa.Column("until_us", BIG, nullable=False),
        sa.Column("reason", sa.String(255), nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("username", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(
            ["terminal_id"], ["terminal.id"], name="fk_out_of_service_terminal_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_out_of_service_until_us", "out_of_service", ["until_us"])
