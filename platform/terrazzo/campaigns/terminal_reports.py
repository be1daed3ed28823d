"""What terminals say that matters to a campaign: versions on ``v``, refusals and failures on ``n``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from terrazzo.database.field import storable_text
from terrazzo.domain.campaigns.item import UpgradeNotice

OK = ("ok", "success")
_FAILED = ("error", "failed", "fail", "refused")


def reported_version(points: Mapping[str, Any], unit: str) -> str | None:
    """The version of a unit: ``lua_version`` or ``mcu_version``, or ``Version`` where ``Unit`` names the unit.

    The case of names doesn't matter. None where the report says nothing of this unit.
    """
    named = {name.lower(): value for name, value in points.items()}
    value = named.get(f"{unit.lower()}_version")
    if value is None and str(named.get("unit", "")).upper() == unit:
        value = named.get("version")
    is_version = isinstance(value, str | int | float) and not isinstance(value, bool)
    return storable_text(str(value)) if is_version else None


def upgrade_notice(points: Mapping[str, Any], unit: str) -> UpgradeNotice | None:
    """The result that a notice on ``n`` reports for the upgrade of a unit; None where it is about something else."""
    if points.get("Act") != "AXUpgrade" or points.get("Unit") not in (None, unit):
        return None
    result = str(points.get("Result", "")).lower()
    if result in OK:
        return UpgradeNotice(True, "")
    if result not in _FAILED:
        return None
    return UpgradeNotice(False, storable_text(str(points.get("Reason", result)))[:200])
