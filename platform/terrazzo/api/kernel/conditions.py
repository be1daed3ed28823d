"""``where_and``, ``where_or``, ``where_in`` and ``order_by`` in every shape that the documents show.

Read here once for the gateway and the components; the repository checks fields and binds values.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, ClassVar, Self

import msgspec

from terrazzo.api.kernel.fields import Parsed, kind, parse_json_text
from terrazzo.api.kernel.paging import PageRequest
from terrazzo.database.conditions import MAX_CONDITIONS, MAX_VALUES_IN_ALL, number_of_values
from terrazzo.database.port import Conditions
from terrazzo.reasons import say

_ARRAY = {"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "null"}]}
_DIRECTIONS = {"asc": False, "desc": True}


class Comparisons(Parsed):
    """``[[field, operator, value], ...]``."""

    schema: ClassVar[dict[str, Any]] = {
        **_ARRAY,
        "description": "[[field, operator, value], ...], as such or as text; operators = <> != > >= < <= like in",
    }
    __slots__ = ("conditions",)

    def __init__(self, conditions: tuple[tuple[str, str, Any], ...] = ()) -> None:
        self.conditions = conditions

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Empty text, an empty array and null are no conditions."""
        found = _array(value)
        _check_number(found)
        return cls(tuple(_comparison(number, each) for number, each in enumerate(found, 1)))


class Memberships(Parsed):
    """``[field, values]`` or ``[[field, values], ...]``; values: text separated by commas, or an array."""

    schema: ClassVar[dict[str, Any]] = {
        **_ARRAY,
        "description": "[field, values] or [[field, values], ...], or its text; values: list, or text with commas",
    }
    __slots__ = ("conditions",)

    def __init__(self, conditions: tuple[tuple[str, list[Any]], ...] = ()) -> None:
        self.conditions = conditions

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Empty text, an empty array and null are no conditions."""
        found = _array(value)
        pairs = [found] if found and isinstance(found[0], str) else found
        _check_number(pairs)
        lists = (each[1] for each in pairs if isinstance(each, list) and len(each) == 2)
        if number_of_values(lists) > MAX_VALUES_IN_ALL:  # before they are taken apart
            raise ValueError(say("too_many_values_in_all", most=MAX_VALUES_IN_ALL))
        return cls(tuple(_membership(number, each) for number, each in enumerate(pairs, 1)))


class Order(Parsed):
    """``[field, "asc" | "desc"]``."""

    schema: ClassVar[dict[str, Any]] = {**_ARRAY, "description": '[field, "asc" or "desc"], as such or as text'}
    __slots__ = ("by",)

    def __init__(self, by: tuple[str, bool] | None = None) -> None:
        self.by = by  # field, descending

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Empty text, an empty array and null leave the order as it is."""
        found = _array(value)
        if not found:
            return cls()
        if len(found) != 2 or not all(isinstance(each, str) for each in found):
            raise ValueError(say("expected_field_and_direction", got=_shown(found)))
        field, direction = found
        descending = _DIRECTIONS.get(direction.strip().lower())
        if descending is None:
            raise ValueError(say("expected_direction", got=_shown(direction)))
        return cls((field, descending))


class ListRequest(PageRequest):
    """A page of the records that meet all conditions of ``where_and`` and ``where_in`` and one of ``where_or``."""

    where_and: Comparisons = msgspec.field(default_factory=Comparisons)
    where_or: Comparisons = msgspec.field(default_factory=Comparisons)
    where_in: Memberships = msgspec.field(default_factory=Memberships)
    order_by: Order = msgspec.field(default_factory=Order)


class Filter(msgspec.Struct, kw_only=True):
    """What meets all conditions of ``where_and`` and ``where_in`` and one of ``where_or``."""

    where_and: Comparisons = msgspec.field(default_factory=Comparisons)
    where_or: Comparisons = msgspec.field(default_factory=Comparisons)
    where_in: Memberships = msgspec.field(default_factory=Memberships)


def conditions_of(request: ListRequest | Filter) -> Conditions:
    """The conditions as repositories take them."""
    return Conditions(request.where_and.conditions, request.where_or.conditions, request.where_in.conditions)


def _array(value: Any) -> list[Any]:
    found = parse_json_text(value) if isinstance(value, str) else value
    if found is None:
        return []
    if not isinstance(found, list):
        raise ValueError(say("expected_array_or_json", got=kind(found)))
    return found


def _check_number(conditions: list[Any]) -> None:
    if len(conditions) > MAX_CONDITIONS:
        raise ValueError(say("too_many_conditions", most=MAX_CONDITIONS))


def _comparison(number: int, given: Any) -> tuple[str, str, Any]:
    if not isinstance(given, list) or len(given) != 3:
        raise ValueError(say("condition_expected_three", number=number, got=_shown(given)))
    field, operator, value = given
    for position, text in enumerate((field, operator), 1):
        if not isinstance(text, str):
            raise ValueError(say("condition_element_expected_text", number=number, element=position, got=kind(text)))
    return field, operator, value


def _membership(number: int, given: Any) -> tuple[str, list[Any]]:
    if not isinstance(given, list) or len(given) != 2:
        raise ValueError(say("condition_expected_two", number=number, got=_shown(given)))
    field, values = given
    if not isinstance(field, str):
        raise ValueError(say("condition_field_expected_text", number=number, got=kind(field)))
    if isinstance(values, str):
        return field, [value.strip() for value in values.split(",")] if values.strip() else []
    if isinstance(values, list):
        return field, values
    if isinstance(values, int | float) and not isinstance(values, bool):
        return field, [values]
    raise ValueError(say("condition_expected_list", number=number, got=kind(values)))


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
