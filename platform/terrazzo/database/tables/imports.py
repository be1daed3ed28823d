"""The journal of imports that are written in pieces and not whole yet: which records each piece has made."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

UNFINISHED_IMPORT = sa.Table(
    "unfinished_import",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("batch", sa.String(32), nullable=False),  # of all pieces, as in the audit log
    sa.Column("entity", sa.String(32), nullable=False),
    sa.Column("record_ids", sa.Text, nullable=False),  # JSON
    sqlite_autoincrement=True,
)
