"""Adds links that show one dashboard on a wall: a row for each dashboard that has one, with the key's hash."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0043"
down_revision = "0040"


def upgrade() -> None:
    op.create_table(
        "wall_link",
        sa.Column("dashboard_id", BIG, primary_key=True, autoincrement=False),
        sa.Column("object_id", BIG),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("made_by", BIG, nullable=False),
        sa.Column("made_us", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["dashboard_id"], ["dashboard.id"], name="fk_wall_link_dashboard_id_dashboard", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("key_hash", name="uq_wall_link_key_hash"),
    )
