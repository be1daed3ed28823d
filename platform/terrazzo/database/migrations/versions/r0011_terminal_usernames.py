"""Adds indexes for lists of terminals in the order of their usernames."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    for columns in (["username", "id"], ["permission_company_id", "username", "id"]):
        op.create_index(op.f(f"ix_terminal_{'_'.join(columns)}"), "terminal", columns)
