"""Adds indexes of events by when they were acknowledged or cleared: what a shift did, whenever it was raised."""

from alembic import op

from terrazzo.database.partial_index import where

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    for done in ("acknowledged_at", "cleared_at"):
        is_done = where(f"{done} IS NOT NULL")
        op.create_index(f"ix_event_company_id_{done}_id", "event", ["company_id", done, "id"], **is_done)
        op.create_index(f"ix_event_{done}_id", "event", [done, "id"], **is_done)
