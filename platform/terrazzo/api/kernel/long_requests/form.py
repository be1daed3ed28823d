"""``LongForm``: the fields of a long request, read one by one, each of which has so many values at the most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import msgspec
from msgspec.structs import FieldInfo

from terrazzo.api.kernel.fields import KeyList, is_parsed, reads_text
from terrazzo.api.kernel.long_requests.values import separators, takes_long, values_in
from terrazzo.api.kernel.schema_faults import schema_fault
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import Steps
from terrazzo.reasons import say, say_each

Read = Callable[[Any, Any], Any]
"""A value as a field's type has it, from the type and what came; it raises msgspec's ``ValidationError``."""


class LongForm:
    """The fields of one request as far as they are read, and ``faults``: path and reason by field.

    Args:
        request: its type.
        read: reads a field.
        most_values: in one field.
    """

    def __init__(self, request: type[msgspec.Struct], read: Read, most_values: int) -> None:
        self.faults: dict[str, tuple[str, str]] = {}
        self._request = request
        self._fields = msgspec.structs.fields(request)
        self._read = read
        self._most_values = most_values
        self._found: dict[str, Any] = {}

    def read_all(self, values: Mapping[str, Any]) -> Steps[None]:
        """Reads the fields, each as JSON (``Raw``), or as it was in a query string or a form."""
        for field in self._fields:
            name = field.encode_name
            if name not in values:
                continue
            value = values[name]
            if not (yield from self._is_too_much(field, value)):
                self._read_one(field, value)
            elif not reads_text(field.type):
                self.faults[name] = "", say("too_many_values_of_field", most=self._most_values)
            elif bytes(value)[:1] == b"[":
                self._found[field.name] = bytes(value).decode()  # its reader takes it apart, record by record
            else:
                self._read_one(field, value)  # text already
            yield

    def _is_too_much(self, field: FieldInfo, value: Any) -> Steps[bool]:
        """Whether reading a field would take too long."""
        if isinstance(value, msgspec.Raw):
            json, is_text = bytes(value), KeyList in (field.type, *get_args(field.type))
        elif isinstance(value, str) and is_parsed(field.type):
            json, is_text = value.encode("utf-8", "surrogatepass"), True
        else:
            return False
        if not takes_long(json):
            return False
        found = separators(json) if is_text else (yield from values_in(json, self._most_values))
        return found > self._most_values

    def _read_one(self, field: FieldInfo, value: Any) -> None:
        try:
            self._found[field.name] = self._read(field.type, value)
        except msgspec.ValidationError as error:
            self.faults[field.encode_name] = schema_fault(error)
        except RecursionError:
            self.faults[field.encode_name] = "", say("nested_too_deeply")

    def forget(self, names: Iterable[str]) -> None:
        """Fields that count as not sent."""
        for field in self._fields:
            if field.encode_name in names:
                self._found.pop(field.name, None)
                self.faults.pop(field.encode_name, None)

    def made(self) -> Any:
        """The request.

        Raises:
            BadParameter: with every missing field, and every one with a fault.
        """
        faults = []
        for field in self._fields:
            name = field.encode_name
            if name in self.faults:
                faults.append((name + self.faults[name][0], self.faults[name][1]))
            elif field.required and field.name not in self._found:
                faults.append((name, say("is_required")))
        if faults:
            raise BadParameter(faults[0][0], say_each(faults))
        return self._request(**self._found)
