"""Adds indexes of what waits for a person: raised events, open labels, commands by state."""

from alembic import op

from terrazzo.database.partial_index import where

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    raised, is_open = where("state = 'raised'"), where("close_at IS NULL")
    op.create_index("ix_event_raised", "event", ["company_id", "severity", "id"], **raised)
    op.create_index("ix_event_raised_of_all", "event", ["severity", "id"], **raised)
    op.create_index("ix_label_open", "label", ["company_id", "opened_at"], **is_open)
    op.create_index("ix_label_open_of_all", "label", ["id"], **is_open)
    op.create_index("ix_command_company_id_state_expires_us", "command", ["company_id", "state", "expires_us"])
