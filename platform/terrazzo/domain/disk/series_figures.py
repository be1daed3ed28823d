"""What of the disk a company's time series take."""

from __future__ import annotations

from typing import NamedTuple


class SeriesFigures(NamedTuple):
    """What a company's time series take of the disk, and may, in bytes (0: as much as there is); ``key``: what says so.

    ``is_full``: its terminals are not read. ``days_left``: until it is; None where nothing grows, or it isn't known.
    """

    company_id: int
    bytes: int
    most: int
    key: str
    is_full: bool
    days_left: float | None
