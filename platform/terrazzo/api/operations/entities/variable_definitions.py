"""What is said of a mapping's variables, by code: unit, decimals, range, limits, names of states."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from terrazzo.api.kernel.fields import Json, Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.variables.definition import MOST_DECIMALS, StateName, ValueLimit
from terrazzo.errors import BadParameter
from terrazzo.mosaic.body import parse_mosaic
from terrazzo.objects.variable_definitions import DefinedVariable, defined_variables
from terrazzo.ports.store import Value
from terrazzo.reasons import say
from terrazzo.times import format_spaced, now_us

_Decimals = Annotated[int, Meta(ge=0, le=MOST_DECIMALS, description="how many are shown; null: all")]
_GIVEN = ("unit", "decimals", "low", "high", "limits", "states")


class VariablesOfMapping(msgspec.Struct, kw_only=True):
    """Which mapping."""

    mapping_id: Key


class DefineVariable(msgspec.Struct, kw_only=True):
    """A variable of a mapping, and what to say of it; what is not given stays as it is.

    ``low``, ``high``: the ends of the range that gauges and axes show. ``limits``: up to 8 of ``{"above": 80,
    "severity": "major", "name": ""}`` or the same with ``below``; they are shown and raise nothing. ``states``: names
    of values, by the value as text: ``{"1": {"label_en": "On", "label_cn": ""}}``.
    """

    mapping_id: Key
    code: Annotated[str, Meta(min_length=1, max_length=64, description="the code of a row that is no EVNT")]
    unit: Annotated[str, Meta(max_length=16, description="as it is shown")] | UnsetType = UNSET
    decimals: _Decimals | UnsetType | None = UNSET
    low: float | UnsetType | None = UNSET
    high: float | UnsetType | None = UNSET
    limits: Json | UnsetType = UNSET
    states: Json | UnsetType = UNSET


class VariableDefinitionRecord(msgspec.Struct):
    """A variable of a mapping: ``kind`` is its row's (STA, FUNC, COL, STT)."""

    code: str
    label_en: str
    label_cn: str
    kind: str
    unit: str
    decimals: int | None
    low: float | None
    high: float | None
    limits: list[ValueLimit]
    states: dict[str, StateName]


class VariablesOfObject(msgspec.Struct, kw_only=True):
    """Which object."""

    object_id: Key


class ObjectVariable(VariableDefinitionRecord):
    """A variable of an object with its newest value, by the time of its report; ``age_s`` in seconds.

    ``value``, ``time`` and ``age_s`` are null where it never had one.
    """

    value: float | str | bool | None
    time: str | None
    age_s: float | None


async def handle_get_variable_definition_list(
    services: Services, actor: Actor, request: VariablesOfMapping
) -> list[VariableDefinitionRecord]:
    """All variables of a mapping, in the order of its rows."""
    found = await services.variable_definitions.of(actor, request.mapping_id)
    return [VariableDefinitionRecord(**_fields(each)) for each in found]


async def handle_update_variable_definition(
    services: Services, actor: Actor, request: DefineVariable
) -> VariableDefinitionRecord:
    """Says something of one variable of a mapping.

    Raises:
        BadParameter: a value that can't be.
        NotFound: no such mapping, or it has no such variable.
    """
    given = {name: getattr(request, name) for name in _GIVEN}
    values = {name: value for name, value in given.items() if value is not UNSET}
    if not values:
        raise BadParameter("code", say("no_variable_change", names=", ".join(_GIVEN[:-1]), last=_GIVEN[-1]))
    for name, empty in (("limits", []), ("states", {})):
        if name in values:
            values[name] = values[name].value or empty
    changed = await services.variable_definitions.define(actor, request.mapping_id, request.code, values)
    return VariableDefinitionRecord(**_fields(changed))


async def handle_get_object_variable_list(
    services: Services, actor: Actor, request: VariablesOfObject
) -> list[ObjectVariable]:
    """The variables of an object's mapping with their newest values, in the order of its rows.

    Raises:
        NotFound: no such object.
    """
    object_id = await find_object(services, actor, request.object_id)
    mapping_id = (await services.entities.objects.item(actor, object_id))["mapping_id"]
    if mapping_id is None:
        return []
    variables = defined_variables(await services.entities.mappings.item(actor, mapping_id))
    codes = [each.code for each in variables]
    newest = await services.store.latest_each(f"m/{object_id}", codes, most_bytes=services.limits.answer_bytes)
    bodies = {record: parse_mosaic(record.body) for record in set(newest.values())}
    values = {code: (bodies[record].get(code), record.time_us) for code, record in newest.items()}
    return [_with_value(services, each, values.get(each.code), now_us()) for each in variables]


def _with_value(
    services: Services, variable: DefinedVariable, newest: tuple[Value, int] | None, now: int
) -> ObjectVariable:
    if newest is None:
        return ObjectVariable(**_fields(variable), value=None, time=None, age_s=None)
    value, time_us = newest
    age_s = round((now - time_us) / 1e6, 1)
    return ObjectVariable(**_fields(variable), value=value, time=format_spaced(time_us, services.zone), age_s=age_s)


def _fields(variable: DefinedVariable) -> dict[str, Any]:
    said = msgspec.structs.asdict(variable.said) | {"limits": list(variable.said.limits)}
    labels = {"code": variable.code, "label_en": variable.label_en, "label_cn": variable.label_cn}
    return {**labels, "kind": variable.kind, **said}


OPERATIONS = (
    Operation(
        name="get_variable_definition_list",
        summary="The variables of a mapping: unit, decimals, range, limits and names of states",
        request=VariablesOfMapping,
        result=list[VariableDefinitionRecord],
        permission=Role.VIEWER,
        handler=handle_get_variable_definition_list,
    ),
    Operation(
        name="update_variable_definition",
        summary="Says unit, decimals, range, limits and names of states of a variable of a mapping",
        request=DefineVariable,
        result=VariableDefinitionRecord,
        permission=Role.ADMIN,
        handler=handle_update_variable_definition,
    ),
    Operation(
        name="get_object_variable_list",
        summary="The variables of an object: the newest value and its age, unit, decimals, range, names of states",
        request=VariablesOfObject,
        result=list[ObjectVariable],
        permission=Role.VIEWER,
        handler=handle_get_object_variable_list,
    ),
)
