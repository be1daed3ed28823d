"""Adds by whom a user is known to the provider of single sign-on."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.add_column("user", sa.Column("by_sso", sa.SmallInteger(), nullable=False, server_default="0"))
    op.add_column("user", sa.Column("sso_hash", sa.String(length=64), nullable=False, server_default=""))
    op.create_index(op.f("ix_user_sso_hash"), "user", ["sso_hash"])
