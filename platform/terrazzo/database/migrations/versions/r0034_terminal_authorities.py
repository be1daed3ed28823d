"""Adds the certificate authorities of terminals; an index has all that lists of terminals filter by."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.create_table(
        "terminal_authority",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("certificate", sa.String(16_384), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("subject_hash", sa.String(64), nullable=False),
        sa.Column("expires", BIG),
        sa.Column("reference", sa.String(64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name="fk_terminal_authority_permission_company_id",
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_terminal_authority"),
        sa.UniqueConstraint("uid", name="uq_terminal_authority_uid"),
        sqlite_autoincrement=True,
    )
    table = "terminal_authority"
    op.create_index("ix_terminal_authority_subject_hash", table, ["subject_hash"])
    op.create_index("ix_terminal_authority_name_id", table, ["name", "id"])
    op.create_index("ix_terminal_authority_permission_company_id_id", table, ["permission_company_id", "id"])
    op.create_index(
        "ix_terminal_authority_permission_company_id_name_id", table, ["permission_company_id", "name", "id"]
    )
    states = "terminal_configuration"
    op.create_index("ix_terminal_configuration_state", states, ["company_id", "state", "reported_us", "terminal_id"])
    op.drop_index("ix_terminal_configuration_company_id_state", states)
