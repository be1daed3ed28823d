"""Creates the second factors of users, and the rule of companies that asks for one."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for table, column in (("user", "has_second_factor"), ("company", "needs_second_factor")):
        op.add_column(table, sa.Column(column, sa.SmallInteger(), nullable=False, server_default="0"))
    op.create_table(
        "second_factor",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("pending", sa.Text(), nullable=False),
        sa.Column("step", BIG, nullable=False),
        sa.Column("recovery", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_second_factor")),
        sa.UniqueConstraint("user_id", name=op.f("uq_second_factor_user_id")),
        sqlite_autoincrement=True,
    )
