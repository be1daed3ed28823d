"""Adds what companies' own records say of their limits; 0: as the configuration says."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0054"
down_revision = "0051"


def upgrade() -> None:
    for name in ("records", "record_bytes", "files", "file_bytes", "events", "event_bytes", "publish_per_second"):
        op.add_column("company", sa.Column(f"limit_{name}", BIG, nullable=False, server_default="0"))
