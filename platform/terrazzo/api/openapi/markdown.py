"""Writes ``docs/actions.md`` from the table, and the examples into ``docs/gateway.md``.

``python -m terrazzo.api.openapi.markdown [FOLDER]``, from the repository's root.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from terrazzo.api.kernel.fields import schema_hook
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.openapi.document import load_examples, permission_text
from terrazzo.api.openapi.field_texts import meaning
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS

EXAMPLES_HEAD = """## Examples

Made from `platform/terrazzo/api/openapi/examples.json` by `python -m terrazzo.api.openapi.markdown`;
a test runs each of them, in this order, against a running platform. `python tests/contract/record_examples.py`
fills in the answers.
"""
_WIDTH = 110  # of a line of an example
_REF = "#/$defs/"

_HEAD = """# Actions and component paths

Made from the table of operations by `python -m terrazzo.api.openapi.markdown`; don't edit. How to call them,
the envelope and the codes are in [gateway.md](gateway.md). Fields that aren't named here are ignored.
"""


def render() -> str:
    """The text of ``docs/actions.md``."""
    parts = [_HEAD, "\n## Actions\n"]
    for operation in TABLE:
        parts += _operation(operation)
    parts.append("\n## Component paths\n\nThe prefix is configurable. Values travel in the query string.\n")
    for path in PATHS:
        parts += _path(path)
    return "".join(parts)


def _operation(operation: Operation) -> Iterator[str]:
    yield f"\n### {operation.name}\n\n{operation.summary}. {permission_text(operation)}\n"
    if operation.aliases:
        yield f"\nAlso: {', '.join(f'`{alias}`' for alias in operation.aliases)}.\n"
    yield from _fields(operation.request)
    yield from _result(operation.result)


def _path(path: Operation) -> Iterator[str]:
    yield f"\n### {path.method} {path.path}\n"
    yield f"\n{path.summary}. {permission_text(path)}\n"
    if TABLE.find(path.name) is None:
        yield from _fields(path.request)
    else:
        yield f"\nParameters: those of [{path.name}](#{path.name}).\n"
    yield from _result(path.result)


def _fields(request: type[msgspec.Struct]) -> Iterator[str]:
    (schema,), definitions = msgspec.json.schema_components([request], schema_hook=schema_hook)
    schema = _resolve(schema, definitions)
    required = schema.get("required", ())
    if not schema["properties"]:
        yield "\nNo fields.\n"
        return
    yield "\n| field | type | required | |\n|---|---|---|---|\n"
    for name, described in schema["properties"].items():
        note = meaning(name, described)
        if described.get("default") is not None:
            note = f"default {described['default']}" + (f"; {note}" if note else "")
        kind = _type(described, definitions).replace(" or null", "")
        yield f"| {name} | {kind} | {'yes' if name in required else 'no'} | {note} |\n"


def _result(result: Any) -> Iterator[str]:
    if result is msgspec.UnsetType:
        yield "\nNo result: `code`, `msg` and `info` only.\n"
        return
    (schema,), definitions = msgspec.json.schema_components([result], schema_hook=schema_hook)
    yield f"\nResult: {_shape(schema, definitions)}\n"


def _shape(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """An object by its fields, an array by what it holds."""
    schema = _resolve(schema, definitions)
    if schema.get("type") == "array" and "items" in schema:
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


def render_gateway(text: str) -> str:
    """``docs/gateway.md`` with today's examples at its end."""
    before, _, _ = text.partition(f"\n{EXAMPLES_HEAD.splitlines()[0]}\n")
    return "".join([before, "\n", EXAMPLES_HEAD, *_examples()])


def _examples() -> Iterator[str]:
    examples = load_examples()
    summaries = {operation.name: operation.summary for operation in TABLE}
    for name, example in examples.items():
        yield f"\n### {name}\n\n{summaries[name]}.\n"
        for value in (example.request, example.answer):
            yield f"\n```json\n{_laid_out(value)}\n```\n"


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON text, on one line where it isn't longer than ``_WIDTH``."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_laid_out(each, inner)}" for name, each in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _laid_out(each, inner) for each in value) + f"\n{indent}]"


def main() -> None:
    """Writes both files in the folder that is named, ``docs`` otherwise."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    (folder / "actions.md").write_text(render(), encoding="utf-8")
    gateway = folder / "gateway.md"
    gateway.write_text(render_gateway(gateway.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
