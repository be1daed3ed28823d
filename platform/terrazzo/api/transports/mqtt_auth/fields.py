"""The fields of a broker's question: a JSON object or a form of short texts."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address

import msgspec

from terrazzo.api.transports.bodies.forms import URLENCODED, read_urlencoded
from terrazzo.api.transports.bodies.multipart import BadForm

_MOST_FIELDS = 50
_decode_object = msgspec.json.Decoder(dict[str, str | int | float | bool | None]).decode


class BadQuestion(Exception):
    """A question that can't be read; ``str()`` says why."""


def read_fields(body: bytes, media_type: str, charset: str) -> Mapping[str, str]:
    """The fields of a question by name, as text; those that are null are left out.

    Raises:
        BadQuestion: it is neither an object of plain values nor a form, has too many fields, or one of them twice.
    """
    if media_type == URLENCODED:
        try:
            given = read_urlencoded(body, charset).fields
        except BadForm as error:
            raise BadQuestion(str(error)) from None
        fields = dict(given)
        if len(fields) < len(given):
            raise BadQuestion("a field comes twice")
    else:
        try:
            found = _decode_object(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadQuestion(str(error)) from None
        fields = {name: _text(value) for name, value in found.items() if value is not None}
    if len(fields) > _MOST_FIELDS:
        raise BadQuestion(f"more than {_MOST_FIELDS} fields")
    return fields


def _text(value: str | float | bool) -> str:
    return value if isinstance(value, str) else str(value)


def needed(fields: Mapping[str, str], *names: str) -> str:
    """The field that has one of these names; raises ``BadQuestion`` where there is none, or nothing in it."""
    found = given(fields, *names)
    if not found:
        raise BadQuestion(f"{names[0]} is missing")
    return found


def given(fields: Mapping[str, str], *names: str) -> str | None:
    """The field that has one of these names, None where there is none."""
    return next((fields[name] for name in names if name in fields), None)


def address_of(fields: Mapping[str, str], asker: str) -> str:
    """The client's address, as the broker says; the asker's where it doesn't."""
    said = given(fields, "peerhost", "ip", "ipaddress", "ip_address")
    try:
        return asker if said is None else str(ip_address(said.partition("%")[0]))
    except ValueError:
        return asker
