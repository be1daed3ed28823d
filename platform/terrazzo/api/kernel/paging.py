"""Pages: what a client asks for, and what it gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

import msgspec

from terrazzo.api.kernel.fields import PageIndex, PageSize

T = TypeVar("T")


class PageRequest(msgspec.Struct, kw_only=True):
    """A page of a list."""

    page_index: PageIndex = 1
    page_size: PageSize = 20


class AsksForPage(Protocol):
    """Any request with these two fields."""

    page_index: int
    page_size: int


class Paged(msgspec.Struct, Generic[T]):
    """Section 1 "Paged result"."""

    data: list[T]
    page_index: int
    page_size: int
    total_pages: int
    total_records: int


class CountedList(list[T]):
    """A page of records as a bare array, where the documents have one; the envelope says how many there are in all."""

    __slots__ = ("total_records",)

    def __init__(self, records: Iterable[T], total_records: int) -> None:
        super().__init__(records)
        self.total_records = total_records


def page_offset(request: AsksForPage) -> int:
    """How many records stand before the page."""
    return (request.page_index - 1) * request.page_size


def paged(request: AsksForPage, data: list[T], total: int) -> Paged[T]:
    """The result of a list: ``data`` of the page that was asked for, and how many records and pages there are."""
    return Paged(data, request.page_index, request.page_size, -(-total // request.page_size), total)
