"""Creates the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("time", BIG, nullable=False),
        sa.Column("company_id", BIG, nullable=True),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("username", sa.String(length=64), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("entity", sa.String(length=32), nullable=False),
        sa.Column("record_id", BIG, nullable=True),
        sa.Column("uid", sa.String(length=96), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_time"), "audit", ["time"], unique=False)
    op.create_index(op.f("ix_audit_company_id_id"), "audit", ["company_id", "id"], unique=False)
    op.create_index(op.f("ix_audit_company_id_time"), "audit", ["company_id", "time"], unique=False)
    op.create_index(op.f("ix_audit_uid_company_id_id"), "audit", ["uid", "company_id", "id"], unique=False)
    op.create_index(op.f("ix_audit_username_company_id_id"), "audit", ["username", "company_id", "id"], unique=False)
