"""The protocol ``Repository``: what operations need from stored entities; its rows, pages and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from terrazzo.domain.actor import Actor

Row = Mapping[str, Any]
"""One record: column name to value; times as UTC microseconds, flags as 0 or 1, JSON columns decoded."""


class Rows(NamedTuple):
    """One page of a list, and the exact number of records that match in all."""

    rows: list[Row]
    total: int


class Conditions(NamedTuple):
    """A request's ``where_and``, ``where_or`` and ``where_in``, parsed; the repository checks fields and values."""

    all_of: Sequence[tuple[str, str, Any]] = ()  # field, operator, value
    any_of: Sequence[tuple[str, str, Any]] = ()
    within: Sequence[tuple[str, Sequence[Any]]] = ()


EVERYTHING = Conditions()


class Repository(Protocol):
    """The stored records of one entity. Every call sees the actor's company only (``is_super``: all companies).

    A key is a record's ``id`` (int) or ``uid`` (str); text that reads as a number finds either form.

    Errors: ``BadParameter`` names the column, ``NotFound``, ``Conflict`` (uid taken, record in use).
    """

    async def create(self, actor: Actor, values: Mapping[str, Any]) -> Row: ...

    async def update(self, actor: Actor, key: int | str, values: Mapping[str, Any], version: str | None = None) -> Row:
        """Changes the given columns, leaves the others; with ``version`` only where the record has it still."""

    async def delete(self, actor: Actor, key: int | str) -> Row:
        """Deletes and returns the record as it was."""

    async def item(self, actor: Actor, key: int | str) -> Row: ...

    async def page(
        self,
        actor: Actor,
        *,
        page_index: int = 1,
        page_size: int = 20,
        conditions: Conditions = EVERYTHING,
        order_by: tuple[str, bool] | None = None,  # column, descending
    ) -> Rows: ...
