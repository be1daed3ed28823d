"""Creates firmware campaigns and their terminals."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create_campaign()
    _create_campaign_terminal()


def _create_campaign() -> None:
    op.create_table(
        "campaign",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("permission_company_id", BIG, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("config_id", BIG, nullable=False),
        sa.Column("unit", sa.String(length=8), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("file", sa.String(length=128), nullable=False),
        sa.Column("terminal_list", sa.Text(), nullable=True),
        sa.Column("waves", sa.Text(), nullable=True),
        sa.Column("failure_percent", BIG, nullable=False),
        sa.Column("failure_minimum", BIG, nullable=False),
        sa.Column("retries", BIG, nullable=False),
        sa.Column("timeout_s", BIG, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=255), nullable=False),
        sa.Column("wave", BIG, nullable=False),
        sa.Column("started", BIG, nullable=True),
        sa.Column("ended", BIG, nullable=True),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("created_by", BIG, nullable=False),
        sa.Column("last_modified_by", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("last_modified", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["permission_company_id"],
            ["company.id"],
            name=op.f("fk_campaign_permission_company_id"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["config_id"], ["configuration.id"], name=op.f("fk_campaign_config_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign")),
        sa.UniqueConstraint("uid", name=op.f("uq_campaign_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_campaign_config_id"), "campaign", ["config_id"])
    op.create_index(op.f("ix_campaign_name_id"), "campaign", ["name", "id"])
    op.create_index(op.f("ix_campaign_permission_company_id_id"), "campaign", ["permission_company_id", "id"])
    op.create_index(
        op.f("ix_campaign_permission_company_id_name_id"), "campaign", ["permission_company_id", "name", "id"]
    )


def _create_campaign_terminal() -> None:
    op.create_table(
        "campaign_terminal",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("campaign_id", BIG, nullable=False),
        sa.Column("terminal_id", sa.String(length=64), nullable=False),
        sa.Column("wave", BIG, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=255), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("attempts", BIG, nullable=False),
        sa.Column("failures", BIG, nullable=False),
        sa.Column("command_uid", sa.String(length=32), nullable=False),
        sa.Column("sent_us", BIG, nullable=True),
        sa.Column("downloading_us", BIG, nullable=True),
        sa.Column("ended_us", BIG, nullable=True),
        sa.Column("deadline_us", BIG, nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaign.id"], name=op.f("fk_campaign_terminal_campaign_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign_terminal")),
        sa.UniqueConstraint("campaign_id", "terminal_id", name=op.f("uq_campaign_terminal_campaign_id_terminal_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_campaign_terminal_campaign_id_id"), "campaign_terminal", ["campaign_id", "id"])
    op.create_index(
        op.f("ix_campaign_terminal_campaign_id_state_id"), "campaign_terminal", ["campaign_id", "state", "id"]
    )
