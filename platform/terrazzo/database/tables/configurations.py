"""The table ``terminal_configuration``: what terminals say about the configurations that were sent to them."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

TERMINAL_CONFIGURATION = sa.Table(
    "terminal_configuration",
    METADATA,
    sa.Column("terminal_id", BIG, primary_key=True, autoincrement=False),  # the record's id
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("version", sa.String(64), nullable=False),  # that it ought to have
    sa.Column("state", sa.String(16), nullable=False),  # pending | sent | confirmed | differs | refused
    sa.Column("since_us", BIG, nullable=False),
    sa.Column("reported_us", BIG),
    sa.Column("difference", sa.Text, nullable=False),
    sa.Index("ix_terminal_configuration_state", "company_id", "state", "reported_us", "terminal_id"),
)
