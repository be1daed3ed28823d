"""Creates the results of statistics, calculations and balances."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create_statistics_period()
    _create_statistics_result()
    _create_calculate_result()
    _create_balance_result()
    _create_analysis_progress()
    _create_analysis_todo()


def _create_statistics_period() -> None:
    op.create_table(
        "statistics_period",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("script_id", BIG, nullable=False),
        sa.Column("script_uid", sa.String(length=64), nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("type", sa.SmallInteger(), nullable=False),
        sa.Column("start_time", BIG, nullable=False),
        sa.Column("end_time", BIG, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("summary", sa.LargeBinary(), nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_statistics_period")),
        sa.UniqueConstraint(
            "script_id",
            "object_id",
            "type",
            "start_time",
            name=op.f("uq_statistics_period_script_id_object_id_type_start_time"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_statistics_period_company_id_type_start_time_id"),
        "statistics_period",
        ["company_id", "type", "start_time", "id"],
    )
    op.create_index(
        op.f("ix_statistics_period_object_id_type_start_time"), "statistics_period", ["object_id", "type", "start_time"]
    )


def _create_statistics_result() -> None:
    op.create_table(
        "statistics_result",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("script_id", BIG, nullable=False),
        sa.Column("script_uid", sa.String(length=64), nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("type", sa.SmallInteger(), nullable=False),
        sa.Column("var_name", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("description", sa.String(length=64), nullable=False),
        sa.Column("start_time", BIG, nullable=False),
        sa.Column("end_time", BIG, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_statistics_result")),
        sa.UniqueConstraint(
            "script_id",
            "object_id",
            "type",
            "start_time",
            "var_name",
            name=op.f("uq_statistics_result_script_id_object_id_type_start_time_var_name"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_statistics_result_company_id_start_time_id"), "statistics_result", ["company_id", "start_time", "id"]
    )


def _create_calculate_result() -> None:
    op.create_table(
        "calculate_result",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("script_id", BIG, nullable=False),
        sa.Column("script_uid", sa.String(length=64), nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("type", sa.SmallInteger(), nullable=False),
        sa.Column("var_name", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("description", sa.String(length=64), nullable=False),
        sa.Column("start_time", BIG, nullable=False),
        sa.Column("end_time", BIG, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_calculate_result")),
        sa.UniqueConstraint(
            "script_id",
            "object_id",
            "type",
            "start_time",
            "var_name",
            name=op.f("uq_calculate_result_script_id_object_id_type_start_time_var_name"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_calculate_result_company_id_start_time_id"), "calculate_result", ["company_id", "start_time", "id"]
    )


def _create_balance_result() -> None:
    op.create_table(
        "balance_result",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("class_id", sa.String(length=64), nullable=False),
        sa.Column("block_id", sa.String(length=64), nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("mapping_id", sa.String(length=64), nullable=True),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("correlation", sa.String(length=32), nullable=False),
        sa.Column("start_time", BIG, nullable=False),
        sa.Column("end_time", BIG, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_balance_result")),
        sa.UniqueConstraint(
            "project_id", "object_id", "start_time", name=op.f("uq_balance_result_project_id_object_id_start_time")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_balance_result_company_id_end_time_id"), "balance_result", ["company_id", "end_time", "id"]
    )
    op.create_index(
        op.f("ix_balance_result_project_id_object_id_end_time"),
        "balance_result",
        ["project_id", "object_id", "end_time"],
    )


def _create_analysis_progress() -> None:
    op.create_table(
        "analysis_progress",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("script_id", BIG, nullable=False),
        sa.Column("script_uid", sa.String(length=64), nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("origin_us", BIG, nullable=False),
        sa.Column("done_us", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_analysis_progress")),
        sa.UniqueConstraint(
            "kind", "script_id", "object_id", name=op.f("uq_analysis_progress_kind_script_id_object_id")
        ),
        sqlite_autoincrement=True,
    )


def _create_analysis_todo() -> None:
    op.create_table(
        "analysis_todo",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("script_id", BIG, nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("start_us", BIG, nullable=False),
        sa.Column("end_us", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_analysis_todo")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_analysis_todo_kind_script_id_object_id"), "analysis_todo", ["kind", "script_id", "object_id"]
    )
