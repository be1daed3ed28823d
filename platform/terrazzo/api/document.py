"""Writes ``docs/actions.md`` from the table: ``python -m terrazzo.api.document [FILE]``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from terrazzo.api.components import PATHS, PREFIXES, ComponentPath
from terrazzo.api.fields import schema_hook
from terrazzo.api.operation import Operation
from terrazzo.api.table import TABLE

ACTIONS_FILE = Path("docs/actions.md")
_REF = "#/$defs/"

_HEAD = """# Actions and component paths

Made from the table of operations by `python -m terrazzo.api.document`; don't edit. How to call them, the envelope and
the codes are in [gateway.md](gateway.md). Fields that aren't named here are ignored.
"""


def render() -> str:
    """The whole document."""
    parts = [_HEAD, "\n## Actions\n"]
    for operation in TABLE:
        parts += _operation(operation)
    parts.append("\n## Component paths\n\nThe prefix is configurable. Values travel in the query string.\n")
    for path in PATHS:
        parts += _path(path)
    return "".join(parts)


def _operation(operation: Operation) -> Iterator[str]:
    yield f"\n### {operation.name}\n\n{operation.summary}. {_permission(operation)}\n"
    if operation.aliases:
        yield f"\nAlso: {', '.join(f'`{alias}`' for alias in operation.aliases)}.\n"
    yield from _fields(operation.request)
    yield from _result(operation.result)


def _path(path: ComponentPath) -> Iterator[str]:
    operation = path.operation
    yield f"\n### {path.method} {PREFIXES[path.base]}{path.path}\n"
    yield f"\n{operation.summary}. {_permission(operation)}\n"
    yield f"\nParameters: those of [{operation.name}](#{operation.name}).\n"
    yield from _result(path.result)


def _permission(operation: Operation) -> str:
    if operation.permission is None:
        return "Needs no role."
    return f"Role: {operation.permission.name.lower()}."


def _fields(request: type[msgspec.Struct]) -> Iterator[str]:
    (schema,), definitions = msgspec.json.schema_components([request], schema_hook=schema_hook)
    schema = _resolve(schema, definitions)
    required = schema.get("required", ())
    if not schema["properties"]:
        yield "\nNo fields.\n"
        return
    yield "\n| field | type | required | |\n|---|---|---|---|\n"
    for name, described in schema["properties"].items():
        note = described.get("description", "")
        if described.get("default") is not None:
            note = f"default {described['default']}" + (f"; {note}" if note else "")
        kind = _type(described, definitions).replace(" or null", "")
        yield f"| {name} | {kind} | {'yes' if name in required else 'no'} | {note} |\n"


def _result(result: Any) -> Iterator[str]:
    (schema,), definitions = msgspec.json.schema_components([result], schema_hook=schema_hook)
    yield f"\nResult: {_shape(schema, definitions)}\n"


def _shape(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """An object by its fields, an array by what it holds."""
    schema = _resolve(schema, definitions)
    if schema.get("type") == "array":
        return f"array of {_shape(schema['items'], definitions)}"
    if "properties" not in schema:
        return _type(schema, definitions)
    fields = (f"`{name}` {_shape(of, definitions)}" for name, of in schema["properties"].items())
    return "{" + ", ".join(fields) + "}"


def _type(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    schema = _resolve(schema, definitions)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(choice, definitions) for choice in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_type(schema['items'], definitions)}" if "items" in schema else "array"
    return str(schema.get("type", "any JSON")) + _range(schema)


def _range(schema: dict[str, Any]) -> str:
    low = schema.get("minimum", schema.get("minLength"))
    high = schema.get("maximum", schema.get("maxLength"))
    unit = " characters" if schema.get("type") == "string" else ""
    if high is None or high >= 2**31 - 1:
        return ""
    return f" {low}..{high}{unit}" if low is not None else f" up to {high}{unit}"


def _resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return definitions[reference.removeprefix(_REF)] if reference else schema


def main() -> None:
    """Writes the file that is named, ``docs/actions.md`` otherwise."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ACTIONS_FILE
    path.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
