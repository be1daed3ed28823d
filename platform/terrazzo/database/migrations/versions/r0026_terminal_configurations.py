"""Adds the field ``deliver`` of configurations, and what terminals say about those that were sent to them."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.add_column("configuration", sa.Column("deliver", sa.SmallInteger(), nullable=False, server_default="0"))
    op.create_table(
        "terminal_configuration",
        sa.Column("terminal_id", BIG, primary_key=True, autoincrement=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("since_us", BIG, nullable=False),
        sa.Column("reported_us", BIG),
        sa.Column("difference", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("terminal_id", name="pk_terminal_configuration"),
    )
    op.create_index("ix_terminal_configuration_company_id_state", "terminal_configuration", ["company_id", "state"])
