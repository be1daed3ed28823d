"""Adds claim keys, and by which of them a terminal came in."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.add_column("terminal", sa.Column("claim_key_id", BIG))
    op.create_table(
        "claim_key",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("uses", BIG, nullable=False),
        sa.Column("used", BIG, nullable=False),
        sa.Column("expires", BIG),
        sa.Column("prefix", sa.String(64), nullable=False),
        sa.Column("config_id", BIG, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("access", sa.String(16), nullable=False),
        sa.Column("topic", sa.String(64), nullable=False),
        sa.Column("reference", sa.String(64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name="fk_claim_key_permission_company_id",
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["config_id"], ["configuration.id"], name="fk_claim_key_config_id", ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_claim_key"),
        sa.UniqueConstraint("uid", name="uq_claim_key_uid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_claim_key_config_id", "claim_key", ["config_id"])
    op.create_index("ix_claim_key_name_id", "claim_key", ["name", "id"])
    op.create_index("ix_claim_key_permission_company_id_id", "claim_key", ["permission_company_id", "id"])
    op.create_index("ix_claim_key_permission_company_id_name_id", "claim_key", ["permission_company_id", "name", "id"])
