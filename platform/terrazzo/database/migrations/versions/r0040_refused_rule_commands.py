"""Commands that a rule was refused to give are kept for a while, with the reason."""

import sqlalchemy as sa
from alembic import op

from terrazzo.database.field import BIG

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    op.add_column("rule_command", sa.Column("reason", sa.Text, nullable=False, server_default=""))
    op.add_column("rule_command", sa.Column("refused_us", BIG))
    op.create_index("ix_rule_command_company_id_noted_us_id", "rule_command", ["company_id", "noted_us", "id"])
    op.create_index("ix_rule_command_rule_id_state_id", "rule_command", ["rule_id", "state", "id"])
