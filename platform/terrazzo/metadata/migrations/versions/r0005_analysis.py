"""Results of statistics, calculations and balances."""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    pass
