"""Creates the journal of replays."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "replay",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("start_us", BIG, nullable=False),
        sa.Column("end_us", BIG),
        sa.Column("dry_run", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("info", sa.Text(), nullable=False),
        sa.Column("starts", BIG, nullable=False),
        sa.Column("records_total", BIG, nullable=False),
        sa.Column("records_done", BIG, nullable=False),
        sa.Column("records_skipped", BIG, nullable=False),
        sa.Column("position_us", BIG),
        sa.Column("mosaic_before", BIG),
        sa.Column("mosaic_after", BIG),
        sa.Column("events_before", BIG),
        sa.Column("events_after", BIG),
        sa.Column("labels_before", BIG),
        sa.Column("labels_after", BIG),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("username", sa.String(length=64), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("ended_us", BIG),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replay")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_replay_company_id_created_id"), "replay", ["company_id", "created", "id"])
    op.create_index(op.f("ix_replay_created_id"), "replay", ["created", "id"])
    op.create_index(op.f("ix_replay_state_id"), "replay", ["state", "id"])
    op.create_index(op.f("ix_replay_object_id_state"), "replay", ["object_id", "state"])
