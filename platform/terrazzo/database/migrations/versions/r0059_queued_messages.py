"""Adds the index of messages that wait, by company: companies take turns at sending."""

from alembic import op

from terrazzo.database.partial_index import where

revision = "0059"
down_revision = "0058"


def upgrade() -> None:
    op.create_index(
        "ix_message_queued", "message", ["project_id", "company_id", "next_us"], **where("state = 'queued'")
    )
