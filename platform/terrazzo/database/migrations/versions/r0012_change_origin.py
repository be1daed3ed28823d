"""Adds the process that made a change to the change log, so that it doesn't apply its own changes twice."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("change", sa.Column("origin", sa.String(16)))
