"""From what a client sent to a request Struct, or to an error that names every field at fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from functools import partial
from typing import Any, NamedTuple

import msgspec

from terrazzo.api.kernel.fields import decode_hook
from terrazzo.api.kernel.long_requests.form import LongForm
from terrazzo.api.kernel.long_requests.values import MOST_VALUES
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.schema_faults import schema_fault
from terrazzo.api.kernel.strictness import refuse_unknown
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import Steps, at_once
from terrazzo.reasons import say, say_each

SPELLINGS = {"is_availabel": "is_available", "objectlist": "object_list"}
"""How the documents spell some fields in places, and what is meant."""

_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Reader(NamedTuple):
    """Reads the requests of one type; ``is_misspelt``: they have fields that the documents spell wrong in places."""

    decode: Callable[[str], Any]
    is_misspelt: bool


class _Readers(dict[type[msgspec.Struct], _Reader]):
    """That of each type, made when it is first asked for."""

    def __init__(self, hook: Callable[[type, Any], Any]) -> None:
        super().__init__()
        self._hook = hook

    def __missing__(self, request: type[msgspec.Struct]) -> _Reader:
        decoder, fields = msgspec.json.Decoder(request, dec_hook=self._hook), request.__struct_encode_fields__
        reader = self[request] = _Reader(decoder.decode, any(right in fields for right in SPELLINGS.values()))
        return reader


class Validator:
    """Decodes the requests of all operations; one decoder each, made once.

    What is long, and what is ``strict``, is read in steps: field by field, each once.

    Args:
        most_values: in one field of a long request.
    """

    def __init__(self, zone: tzinfo, *, most_values: int = MOST_VALUES) -> None:
        self._hook = decode_hook(zone)
        self._readers = _Readers(self._hook)
        self._most_values = most_values

    def from_json(self, operation: Operation, body: str, *, strict: bool = False) -> Any:
        """The request in a JSON object, strictly typed.

        Raises:
            BadParameter: with every missing and every mistyped field, or with ``strict`` every unknown one.
        """
        if strict:
            return at_once(self.steps_from_json(operation, body, strict=True))
        request = operation.request
        reader = self._readers[request]
        if reader.is_misspelt:
            body = _spelled(request, body)
        try:
            return reader.decode(body)
        except (msgspec.ValidationError, RecursionError) as error:
            values = _fields_of.decode(body)
            given = _without_nulls(operation.request, values)
            if len(given) < len(values):
                return self.from_json(operation, msgspec.json.encode(given).decode())
            raise _faults(operation.request, values, self._read_json, error) from None

    def steps_from_json(self, operation: Operation, body: str, *, strict: bool = False) -> Steps[Any]:
        """``from_json`` in steps of some milliseconds, each field read once."""
        request = operation.request
        values = _renamed(request, _fields_of.decode(body))
        yield
        if strict:
            yield from refuse_unknown(request, values, most_values=self._most_values)
        form = LongForm(request, self._read_json, self._most_values)
        yield from form.read_all(values)
        if form.faults:
            form.forget(values.keys() - _without_nulls(request, values).keys())
        return form.made()

    def steps_from_query(
        self,
        operation: Operation,
        texts: Mapping[str, Any],
        fields: Mapping[str, msgspec.Raw],
        given: Mapping[str, Any],
    ) -> Steps[Any]:
        """``from_query`` in steps of some milliseconds.

        Args:
            texts: of a query string or a form; a name that occurs several times is a list.
            fields: of a JSON object, each as it came; they come before texts.
            given: what is there already, and comes before all.
        """
        request = operation.request
        values = _renamed(request, {**texts, **fields, **given})
        form = LongForm(request, self._read_text, self._most_values)
        yield from form.read_all(values)
        return form.made()

    def from_query(self, operation: Operation, values: Mapping[str, Any]) -> Any:
        """The request in a query string, where numbers are text.

        Raises:
            BadParameter: with every missing and every mistyped field.
        """
        values = _renamed(operation.request, values)
        try:
            return self._read_text(operation.request, values)
        except msgspec.ValidationError as error:
            raise _faults(operation.request, values, self._read_text, error) from None

    def _read_json(self, wanted: Any, value: msgspec.Raw) -> Any:
        return msgspec.json.decode(value, type=wanted, dec_hook=self._hook)

    def _read_text(self, wanted: Any, value: Any) -> Any:
        if isinstance(value, msgspec.Raw):
            value = msgspec.json.decode(value)
        return msgspec.convert(value, wanted, strict=False, dec_hook=self._hook)


def _without_nulls(request: type[msgspec.Struct], values: Mapping[str, msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
    """An optional field that is null counts as not sent, whatever its type."""
    optional = {field.encode_name for field in msgspec.structs.fields(request) if not field.required}
    return {name: value for name, value in values.items() if name not in optional or bytes(value) != b"null"}


def _spelled(request: type[msgspec.Struct], body: str) -> str:
    """The body with its fields spelled right; costs nothing where no wrong spelling is in it."""
    for wrong in SPELLINGS:
        if wrong in body:
            break
    else:
        return body
    try:
        return msgspec.json.encode(_renamed(request, _fields_of.decode(body))).decode()
    except (msgspec.MsgspecError, RecursionError):
        return body  # what is wrong with it is said where it is read


def _renamed(request: type[msgspec.Struct], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A right spelling counts more than a wrong one beside it."""
    fields = request.__struct_encode_fields__
    wrong = [name for name, right in SPELLINGS.items() if name in values and name not in fields and right in fields]
    if not wrong:
        return values
    return {SPELLINGS[name]: values[name] for name in wrong} | {n: v for n, v in values.items() if n not in wrong}


def _faults(
    request: type[msgspec.Struct], values: Mapping[str, Any], read: Callable[[Any, Any], Any], error: BaseException
) -> BadParameter:
    """Reads field by field, because msgspec stops at the first fault."""
    faults: list[tuple[str, str]] = []
    for field in msgspec.structs.fields(request):
        name = field.encode_name
        if name not in values:
            if field.required:
                faults.append((name, say("is_required")))
        elif fault := _fault(partial(read, field.type, values[name])):
            faults.append((name + fault[0], fault[1]))
    if not faults:
        return BadParameter("body", schema_fault(error)[1])
    return BadParameter(faults[0][0], say_each(faults))


def _fault(read: Callable[[], Any]) -> tuple[str, str] | None:
    try:
        read()
    except msgspec.ValidationError as error:
        return schema_fault(error)
    except RecursionError:
        return "", say("nested_too_deeply")
    return None
