"""``strict`` in a request: fields that nothing reads are refused, with the field that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from terrazzo.api.kernel.long_requests.values import MOST_VALUES, values_in
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import Steps
from terrazzo.reasons import say, say_each

OF_EVERY_REQUEST = ("action", "actionid", "Authorization", "strict")
MOST_NAMED = 20  # unknown fields in one answer
_MOST_CHARS = 100  # of a field's name in an answer
_AT_ONCE = 200  # records that are looked at before others have their turn

Unknown = tuple[str, str]
"""Path and nearest known name of an unknown field."""


def refuse_unknown(
    request: type[msgspec.Struct], values: Mapping[str, msgspec.Raw], *, most_values: int = MOST_VALUES
) -> Steps[None]:
    """Looks for fields that a request of this type doesn't have, in the records within it too; in steps.

    Args:
        request: its type.
        values: the request's fields, as JSON.
        most_values: more in one field are refused when it is read, and not looked at here.

    Raises:
        BadParameter: it has some; names each, and the nearest known one.
    """
    named = []
    fields = _type_of(request)
    for found in _unknown_of_struct(fields, values, "", OF_EVERY_REQUEST, most_values):
        yield
        if found is not None:
            path, near = found
            named.append((path, say("unknown_field_near", near=near) if near else say("unknown_field")))
            if len(named) == MOST_NAMED:
                break
    if named:
        raise BadParameter(named[0][0], say_each(named))


@cache
def _type_of(request: type[msgspec.Struct]) -> inspect.StructType:
    found = inspect.type_info(request)
    assert isinstance(found, inspect.StructType)
    return found


def _has_records(kind: inspect.Type) -> bool:
    """Whether there may be records within a value whose fields are known."""
    if isinstance(kind, inspect.UnionType):
        return any(map(_has_records, kind.types))
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return _has_records(kind.item_type)
    return isinstance(kind, inspect.StructType)


def _unknown(kind: inspect.Type, value: Any, path: str) -> Iterator[Unknown | None]:
    """Each unknown field; None now and then, so that others may have their turn."""
    if isinstance(kind, inspect.UnionType):
        records = [each for each in kind.types if isinstance(each, inspect.StructType | inspect.ListType)]
        if len(records) == 1:  # of several only reading it tells which is meant
            yield from _unknown(records[0], value, path)
    elif isinstance(kind, inspect.StructType) and isinstance(value, Mapping):
        yield from _unknown_of_struct(kind, value, path)
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(value, list):
        for number, each in enumerate(value if _has_records(kind.item_type) else ()):
            if not number % _AT_ONCE:
                yield None
            yield from _unknown(kind.item_type, each, f"{path}[{number}]")


def _unknown_of_struct(
    kind: inspect.StructType, value: Mapping[str, Any], path: str, besides: tuple[str, ...] = (), most_values: int = 0
) -> Iterator[Unknown | None]:
    fields = {field.encode_name: field.type for field in kind.fields}
    for name, each in value.items():
        at = f"{path}.{name[:_MOST_CHARS]}".removeprefix(".")
        if name not in fields:
            if name not in besides:
                near = difflib.get_close_matches(name[:_MOST_CHARS], [*fields, *besides], n=1)
                yield at, near[0] if near else ""
        elif not isinstance(each, msgspec.Raw):
            yield from _unknown(fields[name], each, at)
        elif _has_records(fields[name]):
            yield from _unknown_of_json(fields[name], bytes(each), at, most_values)


def _unknown_of_json(kind: inspect.Type, json: bytes, path: str, most_values: int) -> Iterator[Unknown | None]:
    """Those in the JSON of a field of the request."""
    if (yield from values_in(json, most_values)) > most_values:
        return
    try:
        value = msgspec.json.decode(json)
    except RecursionError:
        return  # what is wrong with it is said where it is read
    yield from _unknown(kind, value, path)
