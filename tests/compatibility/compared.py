"""Two snapshots compared: what is gone, new or different, each with its name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

HOW_TO_UPDATE = (
    "If this is on purpose: run `.venv/bin/python tests/compatibility/visible.py --update`"
    " and write it into CHANGELOG.md."
)


def differences(kept: Any, found: Any) -> list[str]:
    """A line for each difference, sorted by name: ``- name: value`` is gone, ``+`` is new, ``~`` has changed."""
    before, after = dict(_flat(kept, "")), dict(_flat(found, ""))
    lines = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            lines.append(f"- {name}: {before[name]!r}")
        elif name not in before:
            lines.append(f"+ {name}: {after[name]!r}")
        elif _differ(before[name], after[name]):
            lines.append(f"~ {name}: {before[name]!r} -> {after[name]!r}")
    return lines


def report(kind: str, kept: Any, found: Any) -> str:
    """What a failing test says; empty where nothing differs."""
    lines = differences(kept, found)
    return "\n".join([f"{kind}: {len(lines)} visible differences", *lines, HOW_TO_UPDATE]) if lines else ""


_DIGITS = 1e-12  # of a sum, relative: what is sealed is added up in another order than what isn't yet


def _differ(one: Any, other: Any) -> bool:
    if type(one) is not type(other):  # 1 is not True here
        return True
    if isinstance(one, list):
        return len(one) != len(other) or any(map(_differ, one, other))
    return not math.isclose(one, other, rel_tol=_DIGITS) if isinstance(one, float) else bool(one != other)


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _flat(each, f"{name} › {key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        for place, each in enumerate(value):
            key = each.get("name", place) if isinstance(each, Mapping) else place
            yield from _flat(each, f"{name}[{key}]")
    else:
        yield name, value
