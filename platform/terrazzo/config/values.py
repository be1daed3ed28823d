"""Checks one configuration value against the type of its key, and words the error."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

_HIDDEN = (
    "password",
    "client_secret",
    "token",
    "token_key",
    "secrets_key",
    "secrets_key_old",
)  # keys whose values no error shows


OFF = "off"
"""What turns a port off."""


class ConfigError(Exception):
    """The configuration can't be used; ``str()`` names the key."""


class Given:
    """One value from the file or the environment, and where it is from."""

    def __init__(self, value: Any, source: str) -> None:
        self.value = value
        self.source = source  # what an error names: the key, or the variable and the key


def suggest(name: str, known: Sequence[str], prefix: str = "") -> str:
    """The words ``; did you mean ...?`` where a known name is similar, else nothing."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""


def from_text(kind: inspect.Type, text: str) -> Any:
    """Converts an environment variable's text to what TOML would give; ``check_value`` refuses what doesn't fit."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(kind, inspect.BoolType):
        return words.get(text.strip().lower(), text)
    if isinstance(kind, inspect.StrType) or _takes_text(kind):
        return text
    if isinstance(kind, inspect.VarTupleType | inspect.DictType):
        return _read_value(text)
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _takes_text(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.LiteralType) and isinstance(kind.values[0], str)


def _read_value(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError, RecursionError):
        return text


def check_value(kind: inspect.Type, given: Given) -> Any:
    """The value as the key's type.

    Raises:
        ConfigError: it doesn't fit; names key and source.
    """
    if isinstance(kind, inspect.VarTupleType):
        is_texts = isinstance(kind.item_type, inspect.StrType)
        return _check_texts(given) if is_texts else _check_tables(kind.item_type, given)
    if isinstance(kind, inspect.DictType):
        return _check_pairs(given)
    table = _table_of(kind)
    if table is not None:
        return build_table(table, given.value, given.source)
    can_be_off = isinstance(kind, inspect.UnionType)  # a port
    if isinstance(kind, inspect.UnionType):
        if given.value is False or given.value in (OFF, ""):  # 0 is any free port
            return None
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    check = _CHECKS[type(kind)]
    value, expected = check(kind, given.value)
    if expected:
        expected += f' or "{OFF}"' if can_be_off else ""
        shown = "" if given.source.endswith(_HIDDEN) else f", got {given.value!r:.100}{_next(kind, value, can_be_off)}"
        raise ConfigError(f"{given.source}: expected {expected}{shown}")
    return value


def _next(kind: inspect.Type, value: Any, can_be_off: bool) -> str:
    """What to do about a value that doesn't fit: the one that was meant, or one as it is written."""
    known = [OFF] if can_be_off else []
    if isinstance(kind, inspect.BoolType):
        known += ["true", "false"]
    if isinstance(kind, inspect.LiteralType):
        known += [each for each in kind.values if isinstance(each, str)]
    if isinstance(value, str):
        if isinstance(kind, inspect.IntType | inspect.FloatType) and _is_number(value):
            return f"; write it without quotes: {value}"
        return suggest(value.strip().lower(), known)
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_tables(kind: inspect.Type, given: Given) -> tuple[Any, ...]:
    assert isinstance(kind, inspect.StructType)
    if not isinstance(given.value, list):
        raise ConfigError(f"{given.source}: expected a list of tables [{{ ... }}], got {given.value!r:.100}")
    return tuple(build_table(kind.cls, each, f"{given.source}[{n}]") for n, each in enumerate(given.value, 1))


def _check_texts(given: Given) -> tuple[str, ...]:
    if not isinstance(given.value, list) or not all(isinstance(each, str) for each in given.value):
        raise ConfigError(f"{given.source}: expected a list of texts, got {given.value!r:.100}")
    return tuple(given.value)


def _check_pairs(given: Given) -> dict[str, str]:
    """Checks a table of names and texts. Errors don't show the texts: they may be secrets."""
    if not isinstance(given.value, dict) or not all(isinstance(each, str) for each in given.value.values()):
        raise ConfigError(f'{given.source}: expected a table of texts {{ name = "..." }}')
    return dict(given.value)


def _table_of(kind: inspect.Type) -> type[msgspec.Struct] | None:
    """The Struct of a key that is an optional table; None for any other key."""
    choices = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return next((each.cls for each in choices if isinstance(each, inspect.StructType)), None)


def build_table(kind: type[msgspec.Struct], table: Any, source: str) -> Any:
    """Builds one table of an array of tables; values may be ``Given``, each with its own source.

    Raises:
        ConfigError: it is no table, has an unknown or lacks a required key, or a value doesn't fit its key.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"{source}: expected a table, got {table!r:.100}")
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    fields = {field.encode_name: field for field in info.fields}
    values = {}
    for key, value in table.items():
        given = value if isinstance(value, Given) else Given(value, f"{source}.{key}")
        if key not in fields:
            raise ConfigError(f"{given.source}: unknown key{suggest(key, list(fields), f'{source}.')}")
        values[fields[key].name] = check_value(fields[key].type, given)
    for key, field in fields.items():
        if field.required and field.name not in values:
            raise ConfigError(f"{source}.{key}: is required")
    return kind(**values)


def _check_number(kind: Any, value: Any) -> tuple[Any, str]:
    wanted: tuple[type, ...] = (int,) if isinstance(kind, inspect.IntType) else (int, float)
    low, high = kind.ge if kind.ge is not None else kind.gt, kind.le
    fits = isinstance(value, wanted) and not isinstance(value, bool) and value <= high
    fits = fits and (value >= low if kind.ge is not None else value > low)
    expected = f"{low}..{high}" if kind.ge is not None else f"more than {low} and at most {high}"
    return (float(value), "") if fits and float in wanted else (value, "" if fits else expected)


def _check_bool(_kind: Any, value: Any) -> tuple[Any, str]:
    return value, "" if isinstance(value, bool) else "true or false"


def _check_choice(kind: Any, value: Any) -> tuple[Any, str]:
    fits = value in kind.values and type(value) is type(kind.values[0])
    return value, "" if fits else " or ".join(map(str, kind.values))


def _check_text(kind: Any, value: Any) -> tuple[Any, str]:
    if not isinstance(value, str) or "\0" in value:
        return value, "text"
    if kind.min_length and not value:
        return value, "text that is not empty"
    try:
        msgspec.convert(value, Annotated[str, Meta(pattern=kind.pattern)] if kind.pattern else str)
    except msgspec.ValidationError:
        return value, _PATTERNS.get(kind.pattern, kind.pattern)
    return value, ""


_CHECKS: dict[type, Callable[[Any, Any], tuple[Any, str]]] = {
    inspect.IntType: _check_number,
    inspect.FloatType: _check_number,
    inspect.BoolType: _check_bool,
    inspect.LiteralType: _check_choice,
    inspect.StrType: _check_text,
}

_PATTERNS = {
    r"^(https?://[^\s?#]+)?$": "an address that begins with http:// or https://",
    r"^(/[A-Za-z0-9._~-]+)+$": "a path such as /grid",
    r"^[^/+#\x00]+$": "a name without / + #",
    r"^([0-9a-fA-F]{64})?$": "64 hexadecimal digits",
    r"^(.{32,})?$": "at least 32 characters",
    r"^([\x21-\x7e]{16,})?$": "at least 16 characters of ASCII, without blanks",
    r"^[A-Za-z0-9._-]{1,64}$": "a name of at most 64 letters, digits and . _ -",
}
