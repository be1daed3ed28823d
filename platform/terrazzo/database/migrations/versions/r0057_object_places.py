"""Adds indexes of objects' provinces and cities, by which long lists are narrowed."""

from alembic import op

revision = "0057"
down_revision = "0056"


def upgrade() -> None:
    for place in ("province", "city"):
        op.create_index(f"ix_object_permission_company_id_{place}_id", "object", ["permission_company_id", place, "id"])
        op.create_index(f"ix_object_{place}_id", "object", [place, "id"])
