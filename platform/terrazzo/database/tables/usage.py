"""The table ``company_usage``: how much a company has of what quotas are for, kept by whoever writes it."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

COMPANY_USAGE = sa.Table(
    "company_usage",
    METADATA,
    sa.Column("company_id", BIG, primary_key=True, autoincrement=False),  # 0: a mark that the kind has been counted
    sa.Column("kind", sa.String(32), primary_key=True),  # a table's name
    sa.Column("part", BIG, primary_key=True, autoincrement=False),  # an object's id; 0: all of the company's
    sa.Column("records", BIG, nullable=False),
    sa.Column("bytes", BIG, nullable=False),
)
