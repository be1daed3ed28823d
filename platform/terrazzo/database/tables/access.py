"""The tables of what users log in with, beside their records."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA, past
from terrazzo.database.field import BIG, secret

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

SECOND_FACTOR = sa.Table(
    "second_factor",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("user_id", BIG, nullable=False, unique=True),
    sa.Column("secret", sa.Text, nullable=False),  # sealed; empty: none was confirmed
    sa.Column("pending", sa.Text, nullable=False),  # sealed; one that is not confirmed yet
    sa.Column(
        "step", BIG, nullable=False
    ),  # of the last code that was accepted: neither it nor an earlier one is again
    sa.Column("recovery", sa.Text, nullable=False),  # JSON array of SHA-256 in hex
    sqlite_autoincrement=True,
)

SEALED_FACTOR = past(SECOND_FACTOR, (secret("secret", 64), secret("pending", 64)), moment="id", key="user_id")
"""Its sealed columns, for whoever seals all anew."""

WALL_LINK = sa.Table(
    "wall_link",
    METADATA,
    sa.Column(
        "dashboard_id", BIG, sa.ForeignKey("dashboard.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    sa.Column("object_id", BIG),  # for which it is shown; null: the pages' own
    sa.Column("key_hash", sa.String(64), nullable=False, unique=True),  # SHA-256 in hex
    sa.Column("prefix", sa.String(16), nullable=False),
    sa.Column("made_by", BIG, nullable=False),
    sa.Column("made_us", BIG, nullable=False),
)
