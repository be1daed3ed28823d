"""Counts by day, for whatever is counted (section 2 "Statistics counts")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.conditions import Filter
from terrazzo.api.kernel.services import Services
from terrazzo.domain.calendar_days import MOST_DAYS, Days, last_days
from terrazzo.times import now_us

T = TypeVar("T")


class DayFilter(Filter):
    """The last ``day`` days in ``time.zone``, today among them."""

    day: Annotated[int, Meta(ge=1, le=MOST_DAYS)] = 14


class Quantity(msgspec.Struct):
    """How many there are."""

    data: int


class ByDay(msgspec.Struct, Generic[T]):
    """``date`` has the days as MM/DD, the earliest first; ``data`` has each of them."""

    date: list[str]
    data: dict[str, T]


def days_asked(services: Services, request: DayFilter) -> Days:
    """The last ``request.day`` days in ``time.zone``, today among them."""
    return last_days(request.day, now_us=now_us(), zone=services.zone)


def by_day(days: Days, data: Sequence[T]) -> ByDay[T]:
    """The result of counts by day; ``data`` has one entry for each of ``days``."""
    return ByDay(list(days.names), dict(zip(days.names, data, strict=True)))
