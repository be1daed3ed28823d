"""Checks of rows that the platform does step by step, at once."""

from __future__ import annotations

from typing import Any

from terrazzo.domain.mapping_table import mapping_rows_check
from terrazzo.domain.script_rows import calculate_rows_check
from terrazzo.loop_pauses import at_once


def check_mapping_rows(rows: Any) -> None:
    at_once(mapping_rows_check(rows))


def check_calculate_rows(rows: Any) -> None:
    at_once(calculate_rows_check(rows))
