"""Adds what is said of a mapping's events, severity, causes of clearing, and how long companies keep what has happened.

Events of before have the severity of events of which nothing is said; those that are cleared were cleared by users.
"""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0029"
down_revision = "0026"


def upgrade() -> None:
    op.add_column("mapping", sa.Column("events", sa.Text))
    op.add_column("event", sa.Column("severity", sa.SmallInteger(), nullable=False, server_default="2"))
    op.add_column("event", sa.Column("cleared_cause", sa.String(16), nullable=False, server_default=""))
    op.add_column("event", sa.Column("clear_at", BIG))
    op.execute("UPDATE event SET cleared_cause = 'user' WHERE state = 'cleared'")
    op.create_index("ix_event_company_id_severity_id", "event", ["company_id", "severity", "id"])
    op.create_index("ix_event_object_id_code_state", "event", ["object_id", "code", "state"])
    op.create_index("ix_event_clear_at_id", "event", ["clear_at", "id"])
    op.add_column("rule", sa.Column("severity", sa.String(16), nullable=False, server_default=""))
    for kind in ("events", "labels", "commands", "messages", "audit"):
        op.add_column("company", sa.Column(f"retention_{kind}", BIG, nullable=False, server_default="0"))
