"""Adds indexes of terminals' types, by which long lists are narrowed."""

from alembic import op

revision = "0055"
down_revision = "0054"


def upgrade() -> None:
    op.create_index("ix_terminal_permission_company_id_type_id", "terminal", ["permission_company_id", "type", "id"])
    op.create_index("ix_terminal_type_id", "terminal", ["type", "id"])
