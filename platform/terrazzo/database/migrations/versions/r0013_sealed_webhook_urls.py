"""Makes room for the URLs of webhooks as sealed text. The start of the platform seals what is there: it has the key."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        _remake_rule()
    else:
        _retype(op, "rule")


def _remake_rule() -> None:
    """SQLite: recreates the table, with its ids never used again. No table refers to it by a foreign key."""
    last = op.get_bind().execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'rule'")).scalar()
    with op.batch_alter_table("rule", recreate="always", table_kwargs={"sqlite_autoincrement": True}) as table:
        _retype(table)
    if last is not None:
        op.execute("DELETE FROM sqlite_sequence WHERE name = 'rule'")
        op.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('rule', :last)").bindparams(last=last))


def _retype(table: Any, *name: str) -> None:
    """The same step for ``op`` (PostgreSQL), which takes the table's name first, and for a batch (SQLite)."""
    table.alter_column(*name, "url", existing_type=sa.String(1_024), type_=sa.Text(), existing_nullable=False)
