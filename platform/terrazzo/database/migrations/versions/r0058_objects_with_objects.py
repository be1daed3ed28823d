"""Adds the index of objects that name objects: few do, and deleting one asks for those that name it."""

from alembic import op

from terrazzo.database.partial_index import where

revision = "0058"
down_revision = "0057"


def upgrade() -> None:
    op.create_index("ix_object_with_objects", "object", ["id"], **where("object_list IS NOT NULL"))
