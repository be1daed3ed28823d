"""The component interfaces: query strings, forms and JSON bodies at paths, to answers (section 2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.attachments import Attachments
from terrazzo.api.kernel.dispatch import Performer
from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.fields import kind
from terrazzo.api.kernel.long_requests.values import takes_long
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.validation import Validator
from terrazzo.errors import BadParameter
from terrazzo.ports.providers import Attachment
from terrazzo.reasons import say

_unread_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_KINDS = {b"[": "array", b'"': "str", b"t": "bool", b"f": "bool", b"n": "null"}  # of JSON by how it begins


class Components:
    """Answers requests to component paths."""

    def __init__(self, performer: Performer, validator: Validator) -> None:
        self._performer = performer
        self._validator = validator

    async def answer(
        self,
        path: Operation,
        fields: Sequence[tuple[str, str]],
        caller: Caller,
        *,
        body: bytes = b"",
        files: tuple[Attachment, ...] = (),
    ) -> Answer:
        """Answers one request.

        Args:
            path: the row of the path that the request came to.
            fields: of the query string and of a form, decoded, in order.
            body: a JSON object, whose fields come before those of the query.
            files: of a form.
        """
        texts = query_values(fields)
        is_long = takes_long(body) or takes_long(",".join([value for _, value in fields]))
        operation = path.choose({*texts, *_names(body)}) if path.instead else path
        given = {"attachments": Attachments(files)} if files else {}

        def decode() -> Any:
            if is_long:
                return self._validator.steps_from_query(operation, texts, _unread(body), given)
            return self._validator.from_query(operation, {**texts, **_object(body), **given})

        return await self._performer.perform(operation, caller, decode, path.reply(path.shape))


def _names(body: bytes) -> Collection[str]:
    """The fields of a body; of one that can't be read none, which is said later."""
    try:
        return _unread(body).keys()
    except BadParameter:
        return ()


def _unread(body: bytes) -> Mapping[str, msgspec.Raw]:
    """The fields of a body as they came; raises as ``_object``."""
    if not body.strip():
        return {}
    try:
        return _unread_fields(body)
    except msgspec.ValidationError:
        raise BadParameter("body", say("expected_object_got", got=_KINDS.get(body.lstrip()[:1], "number"))) from None
    except RecursionError:
        raise BadParameter("body", say("nested_too_deeply")) from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadParameter("body", say("not_json", why=error)) from None


def _object(body: bytes) -> dict[str, Any]:
    """The fields of a body; raises ``BadParameter``: it is no object, nor empty."""
    if not body.strip():
        return {}
    try:
        found = msgspec.json.decode(body)
    except RecursionError:
        raise BadParameter("body", say("nested_too_deeply")) from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadParameter("body", say("not_json", why=error)) from None
    if not isinstance(found, dict):
        raise BadParameter("body", say("expected_object_got", got=kind(found)))
    return found


def query_values(query: Sequence[tuple[str, str]]) -> Mapping[str, str | list[str]]:
    """A name that occurs several times is a list; an empty value is one that was not given."""
    values: dict[str, list[str]] = {}
    for name, value in query:
        if value:
            values.setdefault(name, []).append(value)
    return {name: each if each[1:] else each[0] for name, each in values.items()}
