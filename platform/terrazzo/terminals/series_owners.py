"""Whose a series of the store is."""

from __future__ import annotations

from collections.abc import Mapping

from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import series_name_in


def series_owner(name: str, registry: Registry, former: Mapping[str, int]) -> int:
    """The id of the company whose terminal reports or answers there, or whose object it is of; 0: nobody's.

    ``former``: companies by the names that series of deleted terminals bear.
    """
    whose = series_name_in(name)
    if name.startswith("m/"):
        return (registry.object_company(int(whose)) if whose.isdecimal() else None) or 0
    terminal = registry.terminal(whose) if name.startswith("c/") else registry.terminal_of_series(whose)
    return former.get(whose, 0) if terminal is None else terminal.company_id
