"""Adds what is said of a mapping's variables: units, decimals, ranges, names of states."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.add_column("mapping", sa.Column("variables", sa.Text))
