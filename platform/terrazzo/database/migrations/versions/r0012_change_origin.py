"""Which process made a change, so that it doesn't hear of its own again."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("change", sa.Column("origin", sa.String(16)))
