"""Adds the terminals that were deleted, and the names of series where a terminal has a deleted one's uid."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("terminal", sa.Column("series", sa.String(96)))
    op.create_table(
        "former_terminal",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("terminal_id", BIG),
        sa.Column("company_id", BIG),
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column("series", sa.String(96), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("created", BIG),
        sa.Column("deleted", BIG, nullable=False),
        sa.Column("purged", BIG),
        sa.PrimaryKeyConstraint("id", name="pk_former_terminal"),
        sa.UniqueConstraint("terminal_id", name="uq_former_terminal_terminal_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_former_terminal_uid", "former_terminal", ["uid"])
    op.create_index("ix_former_terminal_company_id_id", "former_terminal", ["company_id", "id"])
    op.create_index("ix_former_terminal_purged_deleted", "former_terminal", ["purged", "deleted"])
