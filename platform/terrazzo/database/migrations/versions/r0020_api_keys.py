"""Creates the API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0016"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("is_super", sa.SmallInteger(), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("username", sa.String(length=64), nullable=False),
        sa.Column("expires", BIG, nullable=False),
        sa.Column("last_used", BIG),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_api_key_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("uid", name=op.f("uq_api_key_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_api_key_permission_company_id_id"), "api_key", ["permission_company_id", "id"])
    op.create_index(
        op.f("ix_api_key_permission_company_id_name_id"), "api_key", ["permission_company_id", "name", "id"]
    )
    op.create_index(op.f("ix_api_key_name_id"), "api_key", ["name", "id"])
