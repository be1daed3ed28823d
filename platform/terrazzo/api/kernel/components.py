"""The component interfaces: query strings, forms and JSON bodies at paths, to answers (section 2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.attachments import Attachments
from terrazzo.api.kernel.dispatch import Performer
from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.fields import kind
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.validation import Validator
from terrazzo.errors import BadParameter
from terrazzo.ports.providers import Attachment
from terrazzo.reasons import say


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
        values = dict(query_values(fields))
        operation = path.choose({*values, *_names(body)}) if path.instead else path
        given = {"attachments": Attachments(files)} if files else {}
        return await self._performer.perform(
            operation,
            caller,
            lambda: self._validator.from_query(operation, {**values, **_object(body), **given}),
            path.reply(path.shape),
        )


def _names(body: bytes) -> Collection[str]:
    """The fields of a body; of one that can't be read none, which is said later."""
    try:
        return _object(body).keys()
    except BadParameter:
        return ()


def _object(body: bytes) -> dict[str, Any]:
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
