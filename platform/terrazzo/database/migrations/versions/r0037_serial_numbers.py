"""Adds indexes of objects' serial numbers, by which they are searched."""

from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    op.create_index(
        "ix_object_permission_company_id_serial_no_id", "object", ["permission_company_id", "serial_no", "id"]
    )
    op.create_index("ix_object_serial_no_id", "object", ["serial_no", "id"])
