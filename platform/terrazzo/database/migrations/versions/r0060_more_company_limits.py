"""Adds more of what companies' own records say of their limits; 0: as the configuration says."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0060"
down_revision = "0059"

_NAMES = (
    "limit_api_keys",
    "limit_authorities",
    "limit_rules",
    "limit_rule_conditions",
    "limit_rule_commands_per_hour",
    "limit_queued_messages",
    "limit_queued_bytes",
    "limit_subscriptions",
    "limit_retained_messages",
    "limit_retained_bytes",
    "limit_answer_bytes",
    "retention_series",
)


def upgrade() -> None:
    for name in _NAMES:
        op.add_column("company", sa.Column(name, BIG, nullable=False, server_default="0"))
