"""Creates the codes for new passwords."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "password_reset",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("epoch", BIG, nullable=False),
        sa.Column("created_us", BIG, nullable=False),
        sa.Column("expires_us", BIG, nullable=False),
        sa.Column("used_us", BIG),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_password_reset")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_password_reset_code_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_password_reset_user_id_created_us"), "password_reset", ["user_id", "created_us"])
    op.create_index(op.f("ix_password_reset_expires_us"), "password_reset", ["expires_us"])
