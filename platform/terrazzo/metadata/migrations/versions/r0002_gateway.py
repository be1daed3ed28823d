"""What the gateway manages besides the registry: customers, scripts, dashboards."""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    pass
