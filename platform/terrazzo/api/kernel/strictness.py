"""``strict`` in a request: fields that nothing reads are refused, with the field that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from terrazzo.errors import BadParameter
from terrazzo.reasons import say, say_each

OF_EVERY_REQUEST = ("action", "actionid", "Authorization", "strict")
MOST_NAMED = 20  # unknown fields in one answer
_MOST_CHARS = 100  # of a field's name in an answer


def refuse_unknown(request: type[msgspec.Struct], body: str) -> None:
    """Looks for fields that a request of this type doesn't have, in the records within it too.

    Raises:
        BadParameter: it has some; names each, and the nearest known one.
    """
    try:
        values = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return  # what is wrong with it is said where it is read
    named = []
    for path, near in _unknown(_type_of(request), values, "", OF_EVERY_REQUEST):
        named.append((path, say("unknown_field_near", near=near) if near else say("unknown_field")))
        if len(named) == MOST_NAMED:
            break
    if named:
        raise BadParameter(named[0][0], say_each(named))


@cache
def _type_of(request: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(request)


def _unknown(kind: inspect.Type, value: Any, path: str, besides: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Path and nearest known name of each unknown field."""
    if isinstance(kind, inspect.UnionType):
        records = [each for each in kind.types if isinstance(each, inspect.StructType | inspect.ListType)]
        if len(records) == 1:  # of several only reading it tells which is meant
            yield from _unknown(records[0], value, path)
    elif isinstance(kind, inspect.StructType) and isinstance(value, Mapping):
        yield from _unknown_of_struct(kind, value, path, besides)
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(value, list):
        for number, each in enumerate(value):
            yield from _unknown(kind.item_type, each, f"{path}[{number}]")


def _unknown_of_struct(
    kind: inspect.StructType, value: Mapping[str, Any], path: str, besides: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    fields = {field.encode_name: field.type for field in kind.fields}
    for name, each in value.items():
        at = f"{path}.{name[:_MOST_CHARS]}".removeprefix(".")
        if name in fields:
            yield from _unknown(fields[name], each, at)
        elif name not in besides:
            near = difflib.get_close_matches(name[:_MOST_CHARS], [*fields, *besides], n=1)
            yield at, near[0] if near else ""
