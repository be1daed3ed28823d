"""The JSON schemas of the OpenAPI document: requests, results and envelopes of the operations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, get_origin

import msgspec

from terrazzo.api.kernel.envelope import (
    BAD_PARAMETER,
    FAILURE,
    NOT_AUTHENTICATED,
    NOT_FOUND,
    NOT_PERMITTED,
    SUCCESS,
)
from terrazzo.api.kernel.fields import schema_hook
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.openapi.field_texts import MEANINGS, meaning
from terrazzo.bulk.report import Report
from terrazzo.reasons import CATALOGUE, SEVERAL, Reason

Schema = dict[str, Any]
_AT = "#/components/schemas/"

ACTIONID: Schema = {"description": "any JSON value; comes back unchanged"}
STRICT: Schema = {"type": "boolean", "default": False, "description": "whether fields that nothing reads are refused"}
NOTHING: Schema = {"type": "object", "maxProperties": 0, "description": "empty"}


def failure_of(door: str, codes: Iterable[int], result: Schema) -> Schema:
    """The envelope of an error, for a ``door`` as in ``envelope_of``."""
    envelope = envelope_of(door, {"type": "integer", "enum": list(codes)}, {"type": "string"}, result)
    envelope["properties"]["reason"] = {
        "allOf": [reference(Reason.__name__)],
        "description": "info for programs; missing where another program words it, or the request wasn't read",
    }
    return envelope


GATEWAY_FAILURE = "gateway_failure"
COMPONENT_FAILURE = "component_failure"
GATEWAY_CODES = (FAILURE, BAD_PARAMETER, NOT_AUTHENTICATED, NOT_PERMITTED, NOT_FOUND)
COMPONENT_CODES = (FAILURE, NOT_AUTHENTICATED, NOT_PERMITTED)


def envelope_of(door: str, code: Schema, resp: Schema, result: Schema | None) -> Schema:
    """The answer of the ``gateway`` or of a ``component`` (section 1 and 2), which has no ``resp`` and ``actionid``."""
    properties: Schema = {
        "resp": resp,
        "actionid": ACTIONID,
        "code": code,
        "msg": {"type": "string", "description": "not contractual"},
        "info": {"type": "string", "description": "on errors: which field, and what was wrong with it"},
        **({} if result is None else {"result": result}),
    }
    if door == "component":
        del properties["resp"], properties["actionid"]
    return {"type": "object", "properties": properties, "required": list(properties)}


class Schemas:
    """All schemas that the document refers to, each type once."""

    def __init__(
        self, operations: Iterable[Operation], paths: Iterable[Operation], *, others: Iterable[Operation] = ()
    ) -> None:
        """``others`` are operations of which only the requests are described."""
        self._operations, self._paths = tuple(operations), tuple(paths)
        types = [
            *(kind for operation in self._operations for kind in (operation.request, operation.result)),
            Report,
            *(operation.request for operation in others),
            *(path.request for path in self._paths),
            *(path.result for path in self._paths if path.has_result),
        ]
        schemas, parts = msgspec.json.schema_components(types, schema_hook=schema_hook, ref_template=_AT + "{name}")
        self._by_type = {_key(kind): schema for kind, schema in zip(types, schemas, strict=True)}
        self.components: Schema = {name: _explained(_tidy(schema)) for name, schema in parts.items()}
        self.components[Reason.__name__]["properties"]["code"] |= _reason_codes()
        self._add_envelopes()

    def fields(self, request: type[msgspec.Struct]) -> Schema:
        """The schema of a request's own fields."""
        return self.resolve(self._by_type[_key(request)])

    def result(self, kind: Any) -> Schema:
        """The schema of the type of a result."""
        return self._by_type[_key(kind)]

    def resolve(self, schema: Schema) -> Schema:
        """The schema that a reference names; any other as it is."""
        reference = schema.get("$ref")
        return self.components[reference.removeprefix(_AT)] if reference else schema

    def _add_envelopes(self) -> None:
        gateway = [self.request_of(operation) for operation in self._operations]
        answers = [self._answer_of(operation) for operation in self._operations]
        for operation, request, answer in zip(self._operations, gateway, answers, strict=True):
            self.components[f"{operation.name}.request"] = request
            self.components[f"{operation.name}.fields"] = _without_action(request)
            self.components[f"{operation.name}.answer"] = answer
        result = {"anyOf": [NOTHING, self.result(Report)]}
        self.components[GATEWAY_FAILURE] = failure_of("gateway", GATEWAY_CODES, result)
        self.components[COMPONENT_FAILURE] = failure_of("component", COMPONENT_CODES, NOTHING)

    def request_of(self, operation: Operation) -> Schema:
        """A gateway request: the fields beside ``action`` and ``actionid``."""
        fields = self.fields(operation.request)
        action = {"type": "string", "enum": [operation.name, *operation.aliases], "description": MEANINGS["action"]}
        return {
            "title": operation.name,
            "description": operation.summary,
            "type": "object",
            "properties": {"action": action, "actionid": ACTIONID, "strict": STRICT, **_besides(fields["properties"])},
            "required": ["action", *fields.get("required", ())],
        }

    def _answer_of(self, operation: Operation) -> Schema:
        resp = {"type": "string", "enum": [operation.name, *operation.aliases]}
        answer = envelope_of("gateway", {"const": SUCCESS}, resp, self.result(operation.result))
        if get_origin(operation.result) is list:
            answer["properties"]["total_records"] = {"type": "integer", "description": "how many there are in all"}
        if operation.sends_commands:
            uids = {"type": "array", "items": {"type": "string"}}
            answer["properties"]["commands"] = {
                **uids,
                "description": "the commands' uids, in the order of the request",
            }
            answer["required"].append("commands")
        return answer

    def component_answer(self, path: Operation) -> Schema:
        """A component's answer, successful or not."""
        result = self.result(path.result) if path.has_result else None
        success = envelope_of("component", {"const": SUCCESS}, {}, result)
        if not path.is_messenger:
            return {"oneOf": [success, reference(COMPONENT_FAILURE)]}
        failure = failure_of("component", COMPONENT_CODES, NOTHING)
        return {"oneOf": [_with_service(success), _with_service(failure)]}


def _with_service(envelope: Schema) -> Schema:
    """The messenger's envelope says what the provider said (section 2 "Messenger")."""
    fields = {
        "svc_code": {"type": "string", "description": "the provider's code, or of SMTP or HTTP"},
        "svc_ext": {"type": "string", "description": "the uids of the messages, with commas"},
        "svc_msg": {"type": "string", "description": "what the provider said"},
    }
    return {
        **envelope,
        "properties": {**envelope["properties"], **fields},
        "required": [*envelope["required"], *fields],
    }


def _reason_codes() -> Schema:
    """Each code with its sentence."""
    sentences = CATALOGUE | {SEVERAL: "several fields are wrong: faults has the reason of each"}
    return {"enum": list(sentences), "x-enum-descriptions": list(sentences.values())}


def reference(name: str) -> Schema:
    """A reference to a schema of the document's components."""
    return {"$ref": _AT + name}


def _besides(properties: Schema) -> Schema:
    """Without what all requests have; some repeat it, to return it in their result."""
    return {name: schema for name, schema in properties.items() if name not in ("action", "actionid", "strict")}


def _without_action(request: Schema) -> Schema:
    """What a request carries where the address names the action."""
    return {
        **request,
        "properties": {name: schema for name, schema in request["properties"].items() if name != "action"},
        "required": [name for name in request["required"] if name != "action"],
    }


def without_null(schema: Schema) -> Schema:
    """The schema of a value that is left out rather than null, as in a query string."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if not choices:
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf" and (name, value) != ("default", None)}
    return {**rest, **choices[0]} if len(choices) == 1 else {**rest, "anyOf": choices}


def _key(kind: Any) -> str:
    """Types by their text: not all of them can be hashed alike."""
    return f"{kind!r}"


def _explained(schema: Schema) -> Schema:
    """Each field with its meaning, where somebody says one."""
    if "properties" not in schema:
        return schema
    fields = schema["properties"].items()
    given = {name: {**field, "description": meaning(name, field)} for name, field in fields if meaning(name, field)}
    return {**schema, "properties": {**schema["properties"], **given}}


def _tidy(schema: Any) -> Any:
    """Descriptions as plain text; docstrings are indented and quote names twice."""
    if isinstance(schema, Mapping):
        return {name: _plain(value) if name == "description" else _tidy(value) for name, value in schema.items()}
    return [_tidy(each) for each in schema] if isinstance(schema, list) else schema


def _plain(text: Any) -> Any:
    if not isinstance(text, str):  # a property of that name
        return _tidy(text)
    return inspect.cleandoc(text).replace("``", "`")


def readable_by_generators(document: Schema) -> Schema:
    """The document as generators of clients need it.

    They take a schema's title for its name, which several share, before its key; and an array has to say what is in it,
    be it anything.
    """
    schemas = document["components"]["schemas"]
    untitled = {name: {key: each for key, each in schema.items() if key != "title"} for name, schema in schemas.items()}
    whole = {**document, "components": {**document["components"], "schemas": untitled}}
    return {name: part if name == "x-actions" else _with_items(part) for name, part in whole.items()}


def _with_items(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_items(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_open = schema.get("type") == "array" and not {"items", "prefixItems"} & schema.keys()
    return {name: _with_items(each) for name, each in schema.items()} | ({"items": {}} if is_open else {})
