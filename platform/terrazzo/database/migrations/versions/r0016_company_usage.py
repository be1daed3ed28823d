"""Adds the counters of what each company has. The start of the platform counts what is there."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0016"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "company_usage",
        sa.Column("company_id", BIG, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(32), primary_key=True),
        sa.Column("part", BIG, primary_key=True, autoincrement=False),
        sa.Column("records", BIG, nullable=False),
        sa.Column("bytes", BIG, nullable=False),
        sa.PrimaryKeyConstraint("company_id", "kind", "part", name="pk_company_usage"),
    )
