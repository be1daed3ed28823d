"""Creates the pusher's projects."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "project",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("is_active", sa.SmallInteger(), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_project_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("uid", name=op.f("uq_project_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_project_permission_company_id_id"), "project", ["permission_company_id", "id"])
    op.create_index(
        op.f("ix_project_permission_company_id_name_id"), "project", ["permission_company_id", "name", "id"]
    )
    op.create_index(op.f("ix_project_name_id"), "project", ["name", "id"])
