"""The types of request fields: their ranges, and the ones whose JSON form has to be read further."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import tzinfo
from typing import Annotated, Any, ClassVar, Self, get_args

import msgspec
from msgspec import Meta

from terrazzo.database.field import check_depth
from terrazzo.reasons import say
from terrazzo.times import parse_time
from terrazzo_broker.topics.names import is_topic_filter

MOST_NAMES = 1000
EVERY = "*"
"""Among the names of variables: all of them."""
MOST_LEVELS = 128  # of a topic filter

Flag = Annotated[int, Meta(ge=0, le=1, description="1 yes, 0 no")]
Key = Annotated[str, Meta(min_length=1, max_length=128)] | Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A record's ``uid``, or its ``id`` as a number or as text."""

KeyOrNone = Annotated[str, Meta(max_length=128, description="empty: none")] | Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A ``Key`` that may be taken away again."""

PageIndex = Annotated[int, Meta(ge=1, le=2**31 - 1, description="from 1; past the end is empty")]
PageSize = Annotated[int, Meta(ge=1, le=1000)]
Items = Annotated[int, Meta(ge=1, le=1000)]
IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=128)]
"""A second request with the same one does nothing."""


class Parsed(ABC):
    """A field that is more than its JSON form."""

    schema: ClassVar[dict[str, Any]]

    @classmethod
    @abstractmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Reads the JSON form; a ``ValueError`` says what is wrong with it."""


class Moment(Parsed):
    """A time: ``YYYY-MM-DD HH:MM:SS`` in ``time.zone``, or ISO 8601 with an offset or ``Z``."""

    schema: ClassVar[dict[str, Any]] = {
        "type": "string",
        "description": "YYYY-MM-DD HH:MM:SS in time.zone, or ISO 8601 with an offset or Z",
    }
    __slots__ = ("time_us",)

    def __init__(self, time_us: int) -> None:
        self.time_us = time_us

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Times before 1970 count as 1970: nothing was stored earlier."""
        return cls(max(0, parse_time(_text(value), zone)))


class Names(Parsed):
    """A list of strings, as such or as JSON text; one string is a list of one. Empty: no restriction."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": "one string, a list, or a list as JSON text; empty: all",
    }
    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """At most ``MOST_NAMES`` strings; empty ones are left out."""
        names = value
        if isinstance(value, str):
            names = parse_json_text(value) if value.lstrip().startswith("[") else [value]
        if not isinstance(names, list):
            raise ValueError(say("expected_text_or_list", got=kind(value)))
        if len(names) > MOST_NAMES:
            raise ValueError(say("too_many_entries", entries=len(names), most=MOST_NAMES))
        if {*map(type, names)} - {str}:
            position, wrong = next((at, each) for at, each in enumerate(names) if not isinstance(each, str))
            raise ValueError(say("entry_expected_text", entry=position, got=kind(wrong)))
        return cls(tuple(filter(None, names)))


class VariableNames(Names):
    """``Names`` of variables; ``*`` among them is all of them, which is what naming none means."""

    schema: ClassVar[dict[str, Any]] = {
        **Names.schema,
        "description": "codes of variables: one, a list, or a list as JSON text; empty or `*`: all of them",
    }
    __slots__ = ()

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Reads codes of variables, each once, in the order given."""
        found = super().parse(value, zone).names
        return cls() if EVERY in found else cls(tuple(dict.fromkeys(found)))


class Topics(Names):
    """``Names`` that are full topics, channels or MQTT filters."""

    schema: ClassVar[dict[str, Any]] = {
        **Names.schema,
        "description": "full topics, channels or MQTT filters: one, a list, or a list as JSON text; empty: all",
    }
    __slots__ = ()

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Each is a well-formed filter [MQTT-4.7.1-2]."""
        topics = super().parse(value, zone)
        for name in topics.names:
            if "\0" in name or not is_topic_filter(name, levels=MOST_LEVELS):
                raise ValueError(say("not_a_topic", name=name[:100]))
        return topics


class Json(Parsed):
    """A JSON object or array, as such or as text; empty text and null are nothing."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "object"}, {"type": "array"}, {"type": "string"}, {"type": "null"}],
        "description": "a JSON object or array, as such or as text",
    }
    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Objects and arrays of at most ``field.JSON_DEPTH`` levels."""
        found = parse_json_text(value) if isinstance(value, str) else value
        if found is not None and not isinstance(found, dict | list):
            raise ValueError(say("expected_json_got", got=kind(found)))
        if not isinstance(value, str):
            check_depth(found)
        return cls(found)


class KeyList(Json):
    """``Json`` that is a list of uids or ids; text without brackets is a list separated by commas."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "array"}, {"type": "string"}, {"type": "null"}],
        "description": "a list, a list as JSON text, or text with commas",
    }
    __slots__ = ()

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Reads the three forms; the entries are checked where the list is used."""
        if isinstance(value, str) and value.strip() and not value.lstrip().startswith("["):
            value = [key.strip() for key in value.split(",")]
        found = super().parse(value, zone)
        if found.value is not None and not isinstance(found.value, list):
            raise ValueError(say("expected_array_got", got=kind(found.value)))
        return found


_LOOK_THEMSELVES = (Json, Names)
"""What has no deeper levels than it may, once it is read."""


def parse_json_text(text: str) -> Any:
    """The value of a JSON text, None for an empty one; a ``ValueError`` says what is wrong with it."""
    if not text.strip():
        return None
    try:
        found = msgspec.json.decode(text)
        check_depth(found)
        return found
    except RecursionError:
        raise ValueError(say("nested_too_deeply")) from None
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise ValueError(say("not_valid_json", why=error)) from None


def decode_hook(zone: tzinfo) -> Callable[[type, Any], Any]:
    """The ``dec_hook`` that reads ``Parsed`` fields."""

    def read(wanted: type, value: Any) -> Any:
        if issubclass(wanted, Parsed):
            if isinstance(value, dict | list) and not issubclass(wanted, _LOOK_THEMSELVES):
                check_depth(value)
            return wanted.parse(value, zone)
        raise TypeError(f"no way to read {wanted.__name__}")

    return read


READS_TEXT = {"reads_text": True}
"""``extra`` of a field's ``Meta``: the JSON text of its list is as good as the list, and is read piece by piece."""


def reads_text(wanted: Any) -> bool:
    """Whether a field is marked ``READS_TEXT``."""
    marks = [mark for kind in (wanted, *get_args(wanted)) for mark in getattr(kind, "__metadata__", ())]
    return any(isinstance(mark, Meta) and mark.extra == READS_TEXT for mark in marks)


def is_parsed(wanted: Any) -> bool:
    """Whether a field is a ``Parsed``, which may be given as JSON text, or may be one."""
    return any(isinstance(kind, type) and issubclass(kind, Parsed) for kind in (wanted, *get_args(wanted)))


def schema_hook(wanted: type) -> dict[str, Any]:
    """The JSON schema of a ``Parsed`` field or of a value that passes through as it is."""
    if issubclass(wanted, Parsed):
        return wanted.schema
    raise TypeError(f"no schema for {wanted.__name__}")


def kind(value: Any) -> str:
    """The name of a value's JSON type as error texts have it: object, array, str, bool, int, float, null."""
    names = {dict: "object", list: "array", str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(say("expected_text_got_json", got=kind(value)))
    return value
