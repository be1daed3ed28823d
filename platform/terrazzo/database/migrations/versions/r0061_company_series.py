"""Adds how many MiB of the disk a company's time series may take; 0: as the configuration says."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0061"
down_revision = "0060"


def upgrade() -> None:
    op.add_column("company", sa.Column("limit_series_mib", BIG, nullable=False, server_default="0"))
