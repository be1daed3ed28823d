"""The table ``presence_day``: what terminals' connections did on a day (``terrazzo.terminals.presence_bands``).

There are no foreign keys: the rows of a deleted terminal go with their age, and an id is never used again.
"""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

PRESENCE_DAY = sa.Table(
    "presence_day",
    METADATA,
    sa.Column("terminal_id", BIG, primary_key=True, autoincrement=False),  # the record's id; 0: the platform itself
    sa.Column("day", BIG, primary_key=True, autoincrement=False),  # since 1970, UTC
    sa.Column("log", sa.LargeBinary, nullable=False),
    sa.Index(None, "day", "terminal_id"),
)
