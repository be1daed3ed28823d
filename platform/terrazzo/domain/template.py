"""Templates: ``{name}`` in texts is replaced by a value. Nothing is evaluated.

A template is a text, or a JSON value whose texts are templates. A text that is one placeholder and nothing else becomes
the value itself, a list for example; in a longer one the value is inserted as text. A template is parsed before it is
filled, so that a value can't change its structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.]+)\}")

TemplateValues = Mapping[str, Any]


def fill(template: Any, values: TemplateValues) -> Any:
    """Fills in a template; a name without a value becomes empty text."""
    match template:
        case str():
            alone = _PLACEHOLDER.fullmatch(template)
            return values.get(alone[1], "") if alone else fill_text(template, values)
        case dict():
            return {name: fill(each, values) for name, each in template.items()}
        case list():
            return [fill(each, values) for each in template]
    return template


def fill_text(template: str, values: TemplateValues) -> str:
    """Fills in a text; values become text."""
    return _PLACEHOLDER.sub(lambda found: as_text(values.get(found[1], "")), template)


def as_text(value: Any) -> str:
    """A value as text: lists of texts with commas, anything else that isn't text as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    return msgspec.json.encode(value).decode()


def names_in(template: Any) -> Iterator[str]:
    """The names of all placeholders in a template."""
    match template:
        case str():
            yield from _PLACEHOLDER.findall(template)
        case dict():
            for each in template.values():
                yield from names_in(each)
        case list():
            for each in template:
                yield from names_in(each)


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a nested object by dotted path (``Body.Title``); inner objects are also there as a whole."""
    flat: dict[str, Any] = {}
    for name, each in value.items():
        flat[prefix + name] = each
        if isinstance(each, dict):
            flat |= flatten(each, f"{prefix}{name}.")
    return flat
