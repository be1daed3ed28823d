"""Converts stored rows into the Structs that clients receive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def record_of(wanted: type[S], *parts: Mapping[str, Any]) -> S:
    """A Struct ``wanted``, each field from the last part that has it; other keys of the parts are ignored."""
    merged: dict[str, Any] = {}
    for part in parts:
        merged.update(part)
    return wanted(**{name: merged[name] for name in wanted.__struct_fields__})
