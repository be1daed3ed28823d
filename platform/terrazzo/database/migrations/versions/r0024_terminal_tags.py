"""Adds tags of terminals, orders of their lists, and what in the audit log was done at once."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.add_column("terminal", sa.Column("tags", sa.Text, nullable=False, server_default="[]"))
    op.create_table(
        "terminal_tag",
        sa.Column("tag", sa.String(32), nullable=False),
        sa.Column("terminal_id", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["terminal_id"], ["terminal.id"], name="fk_terminal_tag_terminal_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tag", "terminal_id", name="pk_terminal_tag"),
    )
    op.create_index("ix_terminal_tag_terminal_id", "terminal_tag", ["terminal_id"])
    for column in ("config_id", "tags"):
        op.create_index(f"ix_terminal_{column}_id", "terminal", [column, "id"])
        op.create_index(
            f"ix_terminal_permission_company_id_{column}_id", "terminal", ["permission_company_id", column, "id"]
        )
    op.add_column("audit", sa.Column("batch", sa.String(16)))
    op.create_index("ix_audit_batch", "audit", ["batch"])
