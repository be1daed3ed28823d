"""Adds how a configuration's terminals have their payloads read."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0029"


def upgrade() -> None:
    op.add_column("configuration", sa.Column("payload", sa.Text))
