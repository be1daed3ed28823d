"""The tables of what users log in with, beside their records."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

PASSWORD_RESET = sa.Table(
    "password_reset",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("user_id", BIG, nullable=False),
    sa.Column("code_hash", sa.String(64), nullable=False, unique=True),  # SHA-256 in hex
    sa.Column("epoch", BIG, nullable=False),  # of the user's tokens: it rises with each new password
    sa.Column("created_us", BIG, nullable=False),
    sa.Column("expires_us", BIG, nullable=False),
    sa.Column("used_us", BIG),
    sa.Index(None, "user_id", "created_us"),
    sa.Index(None, "expires_us"),
    sqlite_autoincrement=True,
)
