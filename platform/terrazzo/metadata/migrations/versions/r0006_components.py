"""What the component interfaces keep: service, offline data, files, groups."""

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    pass
