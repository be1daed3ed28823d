"""The tables of statistics, calculations and balances: results, progress of each script, ranges to compute again.

Times are UTC microseconds. There are no foreign keys: the analysis removes what is left of a deleted script.
"""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.database.entity import METADATA
from terrazzo.database.field import BIG

STATISTICS_PERIOD = sa.Table(
    "statistics_period",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("script_id", BIG, nullable=False),
    sa.Column("script_uid", sa.String(64), nullable=False),
    sa.Column("object_id", BIG, nullable=False),
    sa.Column("type", sa.SmallInteger, nullable=False),  # 1 hour, 2 day, 3 month, 4 year
    sa.Column("start_time", BIG, nullable=False),
    sa.Column("end_time", BIG, nullable=False),
    sa.Column("data", sa.Text, nullable=False),  # JSON: all variables of the script
    sa.Column("summary", sa.LargeBinary, nullable=False),  # what longer periods are made from
    sa.Column("created", BIG, nullable=False),
    sa.UniqueConstraint("script_id", "object_id", "type", "start_time"),
    sa.Index(None, "company_id", "type", "start_time", "id"),
    sa.Index(None, "object_id", "type", "start_time"),
    sqlite_autoincrement=True,
)


def _results(name: str) -> sa.Table:
    """A table of results, one row for each variable of each period."""
    return sa.Table(
        name,
        METADATA,
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("company_id", BIG, nullable=False),
        sa.Column("script_id", BIG, nullable=False),
        sa.Column("script_uid", sa.String(64), nullable=False),
        sa.Column("object_id", BIG, nullable=False),
        sa.Column("type", sa.SmallInteger, nullable=False),
        sa.Column("var_name", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("description", sa.String(64), nullable=False),
        sa.Column("start_time", BIG, nullable=False),
        sa.Column("end_time", BIG, nullable=False),
        sa.Column("created", BIG, nullable=False),
        sa.Column("is_available", sa.SmallInteger, nullable=False, default=1),
        sa.UniqueConstraint("script_id", "object_id", "type", "start_time", "var_name"),
        sa.Index(None, "company_id", "start_time", "id"),
        sqlite_autoincrement=True,
    )


STATISTICS_RESULT = _results("statistics_result")
CALCULATE_RESULT = _results("calculate_result")

BALANCE_RESULT = sa.Table(
    "balance_result",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("project_id", BIG, nullable=False),  # the script's id
    sa.Column("class_id", sa.String(64), nullable=False),  # and its uid
    sa.Column("block_id", sa.String(64), nullable=False),  # the window: its first second, in UTC
    sa.Column("object_id", BIG, nullable=False),
    sa.Column("mapping_id", sa.String(64)),
    sa.Column("parameters", sa.Text, nullable=False),
    sa.Column("correlation", sa.String(32), nullable=False),
    sa.Column("start_time", BIG, nullable=False),
    sa.Column("end_time", BIG, nullable=False),
    sa.Column("created", BIG, nullable=False),
    sa.Column("is_available", sa.SmallInteger, nullable=False, default=1),
    sa.UniqueConstraint("project_id", "object_id", "start_time"),
    sa.Index(None, "company_id", "end_time", "id"),
    sa.Index(None, "project_id", "object_id", "end_time"),
    sqlite_autoincrement=True,
)

ANALYSIS_PROGRESS = sa.Table(
    "analysis_progress",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(16), nullable=False),  # statistics | calculate | balance
    sa.Column("company_id", BIG, nullable=False),
    sa.Column("script_id", BIG, nullable=False),
    sa.Column("script_uid", sa.String(64), nullable=False),
    sa.Column("object_id", BIG, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),  # hash of the script that this was computed with
    sa.Column("origin_us", BIG, nullable=False),  # where the results begin
    sa.Column("done_us", BIG, nullable=False),  # the end of the complete ones
    sa.UniqueConstraint("kind", "script_id", "object_id"),
    sqlite_autoincrement=True,
)

ANALYSIS_TODO = sa.Table(
    "analysis_todo",
    METADATA,
    sa.Column("id", BIG, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("script_id", BIG, nullable=False),
    sa.Column("object_id", BIG, nullable=False),
    sa.Column("start_us", BIG, nullable=False),  # finished periods that meet this range are computed again
    sa.Column("end_us", BIG, nullable=False),
    sa.Index(None, "kind", "script_id", "object_id"),
    sqlite_autoincrement=True,
)

ANALYSIS = (
    STATISTICS_PERIOD,
    STATISTICS_RESULT,
    CALCULATE_RESULT,
    BALANCE_RESULT,
    ANALYSIS_PROGRESS,
    ANALYSIS_TODO,
)
