"""From a stored row to the Struct that a client sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def record_of(wanted: type[S], *parts: Mapping[str, Any]) -> S:
    """Takes each field from the last part that has it; what else the parts hold stays behind."""
    merged: dict[str, Any] = {}
    for part in parts:
        merged.update(part)
    return wanted(**{name: merged[name] for name in wanted.__struct_fields__})
