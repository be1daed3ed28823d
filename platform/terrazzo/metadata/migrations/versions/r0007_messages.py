"""What leaves the platform: messages sent, rules, firmware campaigns."""

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    pass
