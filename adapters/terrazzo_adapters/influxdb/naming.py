"""Names in InfluxDB: series to measurement and tags, point names to fields, and back.

================= ============ =========================================
``g/T1/r``        ``grid``     ``terminal`` = T1, ``channel`` = r
``m/17``          ``mosaic``   ``object`` = 17
``x/T1``          ``reject``   ``terminal`` = T1
``c/T1``          ``answer``   ``terminal`` = T1
================= ============ =========================================

Characters that line protocol can't escape are percent-encoded, and so is the percent sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote


class SeriesKind(NamedTuple):
    """One kind of series (the first letter of its name): its measurement and tags in InfluxDB."""

    letter: str
    measurement: str
    tags: tuple[str, ...]  # all but the last hold one segment of the name, the last holds the rest


KINDS = (
    SeriesKind("g", "grid", ("terminal", "channel")),
    SeriesKind("m", "mosaic", ("object",)),
    SeriesKind("x", "reject", ("terminal",)),
    SeriesKind("c", "answer", ("terminal",)),
)
_BY_LETTER = {kind.letter: kind for kind in KINDS}

TEXT, FLAG, EMPTY = "|text", "|flag", "|empty"
"""Suffixes of the fields of points that are no numbers."""

BODY = "body"
ARRIVAL = "arrival"
TIE = "tie"
KEPT = "kept"
_OUR_NAMES = {BODY, ARRIVAL, TIE, KEPT, "time", "terminal", "channel", "object"}

_UNSAFE = re.compile(r"[%\\\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNSAFE_IN_FIELD = re.compile(r"[%|\\\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SPECIAL = re.compile(r"([,= ])")
_EMPTY = "%"  # a tag can't be empty, and no encoded text is a lone percent sign


def kind_of(series: str) -> SeriesKind:
    """The kind of a series.

    Raises:
        ValueError: the name begins with none of the kinds' letters.
    """
    letter, slash, _ = series.partition("/")
    if not slash or letter not in _BY_LETTER:
        raise ValueError(f"series {series!r} is none of g/<uid>/<channel>, m/<object_id>, x/<uid>, c/<uid>")
    return _BY_LETTER[letter]


def tag_values(series: str) -> dict[str, str]:
    """The encoded tags of a series, by name; tags without a segment in the series' name are left out."""
    kind = kind_of(series)
    segments = series[2:].split("/", len(kind.tags) - 1)
    return {tag: _encode(segment, _UNSAFE) or _EMPTY for tag, segment in zip(kind.tags, segments, strict=False)}


def series_name(kind: SeriesKind, tags: dict[str, str | None]) -> str:
    """The series that has these tags; the reverse of ``tag_values``."""
    values = [tags.get(tag) for tag in kind.tags]
    segments = ["" if value == _EMPTY else unquote(value) for value in values if value]
    return "/".join([kind.letter, *segments])


@lru_cache(maxsize=100_000)
def line_head(series: str, tie: str) -> str:
    """The beginning of a line of the series: measurement and tags, escaped. ``tie`` may be empty."""
    tags = tag_values(series)
    if tie:
        tags[TIE] = tie
    return ",".join([kind_of(series).measurement, *(f"{tag}={_escape(value)}" for tag, value in tags.items())])


def tagged_head(kind: SeriesKind, tags: Mapping[str, str]) -> str:
    """As ``line_head``, from tags as the server returns them; a tag without a value is left out."""
    return ",".join([kind.measurement, *(f"{tag}={_escape(value)}" for tag, value in sorted(tags.items()) if value)])


@lru_cache(maxsize=100_000)
def field_name(point: str, suffix: str = "") -> str:
    """The field of a point, unescaped; encoded so that it can't equal our own fields or end in one of the suffixes."""
    name = _encode(point, _UNSAFE_IN_FIELD)
    if name in _OUR_NAMES or name.startswith("_"):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    return name + suffix


@lru_cache(maxsize=100_000)
def line_field(field: str) -> str:
    """A field's name, escaped for line protocol."""
    return _escape(field)


def condition(series: str) -> str:
    """The InfluxQL condition that selects the series."""
    values = tag_values(series)
    wanted = [f'"{tag}" = {literal(values.get(tag, ""))}' for tag in kind_of(series).tags]
    return f"({' AND '.join(wanted)})"


def fields_of(key: str) -> tuple[str, str, str, str]:
    """The fields, unescaped, one of which a mosaic record with the name has: of a number, a text, a flag, neither."""
    return field_name(key), field_name(key, TEXT), field_name(key, FLAG), field_name(key, EMPTY)


def carrying(keys: Iterable[str]) -> str:
    """The InfluxQL condition, to be joined to others, that selects records with one of these names, of any type.

    InfluxQL has no IS NOT NULL: a comparison is false where the field is missing, and one that the empty text meets is
    true where no record has the field.
    """
    conditions: list[str] = []
    for key in keys:
        number, text, flag, empty = map(identifier, fields_of(key))
        conditions += [f"{number} <= 0 OR {number} > 0 OR {text} =~ /(?s)./ OR {flag} = true OR {flag} = false"]
        conditions += [f"{empty} = true"]
    return f" AND ({' OR '.join(conditions)})" if conditions else ""


def literal(text: str) -> str:
    """A text as a string literal of InfluxQL, in single quotation marks."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def identifier(name: str) -> str:
    """A name as an identifier of InfluxQL, in double quotation marks."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _encode(text: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(lambda match: quote(match[0], safe=""), text)


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
