"""What is said of a mapping's variables by code, as users see and change it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from terrazzo.database.port import Repository, Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.mapping_row import RowKind
from terrazzo.domain.variables.definition import (
    UNDEFINED,
    VariableDefinition,
    parse_variable_definition,
    parse_variable_definitions,
)
from terrazzo.errors import BadParameter, NotFound
from terrazzo.reasons import told_by


class DefinedVariable(NamedTuple):
    """A variable of a mapping: its row's code, labels and kind, and what is said of it."""

    code: str
    label_en: str
    label_cn: str
    kind: str
    said: VariableDefinition


class VariableDefinitions:
    """Reads and changes the column ``variables`` of mappings, a code at a time."""

    def __init__(self, mappings: Repository) -> None:
        self._mappings = mappings
        self._turn = asyncio.Lock()

    async def of(self, actor: Actor, mapping: int | str) -> list[DefinedVariable]:
        """All variables of a mapping, in the order of its rows.

        Raises:
            NotFound: no such mapping.
        """
        return defined_variables(await self._mappings.item(actor, mapping))

    async def define(self, actor: Actor, mapping: int | str, code: str, values: Mapping[str, Any]) -> DefinedVariable:
        """Changes what is said of one code; what ``values`` doesn't name stays as it is.

        Raises:
            BadParameter: a value that can't be.
            NotFound: no such mapping, or it has no variable of this code.
        """
        async with self._turn:
            row = await self._mappings.item(actor, mapping)
            known = {each.code: each for each in defined_variables(row)}
            if code not in known:
                raise NotFound("code", code)
            said = msgspec.to_builtins(known[code].said) | dict(values)
            try:
                parse_variable_definition(said, code)
            except ValueError as error:
                raise BadParameter("variables", told_by(error)) from None
            variables = {**(row["variables"] or {}), code: said}
            row = await self._mappings.update(actor, row["id"], {"variables": variables})
        return next(each for each in defined_variables(row) if each.code == code)


def defined_variables(row: Row) -> list[DefinedVariable]:
    """The variables of a mapping's record, in the order of its rows."""
    said = parse_variable_definitions(row["variables"] or {})
    cells = [[str(cell).strip() for cell in each[:4]] for each in row["script"] or () if len(each) > 3]
    return [
        DefinedVariable(code, label_en, label_cn, kind, said.get(code, UNDEFINED))
        for code, label_en, label_cn, kind in cells
        if kind != RowKind.EVNT.value
    ]
