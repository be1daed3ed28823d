"""Adds until when an event is shelved, and indexes of what happened to an object, in the order of time."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    op.add_column("event", sa.Column("shelved_until", BIG))
    op.add_column("event", sa.Column("shelved_by", BIG))
    op.create_index("ix_label_object_id_opened_at_id", "label", ["object_id", "opened_at", "id"])
    op.create_index("ix_command_object_id_queued_us_id", "command", ["object_id", "queued_us", "id"])
