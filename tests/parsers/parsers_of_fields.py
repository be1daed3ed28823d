"""Parsers of the fields of requests and records, from JSON or its text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
from parser_kinds import Parser

from client_certificates import ClientCa
from terrazzo.api.kernel.attachments import Attachments
from terrazzo.api.kernel.conditions import Comparisons, Memberships, Order
from terrazzo.api.kernel.fields import (
    Json,
    KeyList,
    Moment,
    Names,
    Parsed,
    Topics,
    VariableNames,
    decode_hook,
    parse_json_text,
)
from terrazzo.api.operations.email_files import uids_of
from terrazzo.api.operations.history.mosaic import DurationText, Keys
from terrazzo.api.operations.history.object_log import parse_place
from terrazzo.api.operations.live import Kinds
from terrazzo.api.operations.messenger_fields import (
    Android,
    Email,
    EmailAddresses,
    Ios,
    Recipients,
    Sms,
    Template,
)
from terrazzo.api.operations.pusher import Publishes
from terrazzo.database.field import Field, check_storable, structure
from terrazzo.domain.certificates.authority import parse_authority
from terrazzo.domain.file_kinds import clean_name, kind_of
from terrazzo.domain.template import fill, names_in
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import OBJECT, TERMINAL, read_key_list
from terrazzo.metadata.definitions.rules import RULE, check_clock, check_template, check_url
from terrazzo.mosaic.duration import parse_duration
from terrazzo.times import UTC, parse_time
from terrazzo.userinfo import is_http_address, shown_address, without_user, without_userinfo

_read = decode_hook(UTC)

DEEP: tuple[Callable[[int], str], ...] = (
    lambda n: "[" * n,
    lambda n: "[" * (n // 2) + "]" * (n // 2),
    lambda n: '{"a":' * (n // 6) + "1" + "}" * (n // 6),
    lambda n: "[" + ",".join(["[]"] * (n // 3)) + "]",
    lambda n: " " * n,
    lambda n: "9" * n,
    lambda n: '"' + "\\" * n,
    lambda n: '"' + "\\u0000" * (n // 6) + '"',
    lambda n: "," * n,
)
"""JSON that is deep, long, or never ends."""


_FIELDS = "terrazzo.api.operations.messenger_fields"
_WITHIN: dict[type[Parsed], tuple[str, ...]] = {
    Email: (f"{_FIELDS}:Group.parse",),
    EmailAddresses: (f"{_FIELDS}:_ADDRESS",),
    Json: ("terrazzo.api.kernel.fields:decode_hook",),
}


def _parsed(kind: type[Parsed], *samples: str, worst: tuple[Callable[[int], str], ...] = ()) -> Parser[str]:
    """A kind of field, from text as it is and from the JSON that the text is."""

    def run(text: str) -> object:
        given: list[Any] = [text]
        with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeError):
            given.append(msgspec.json.decode(text))
        last: Exception | None = None
        for each in given:
            try:
                _read(kind, each)
            except ValueError as error:
                last = error
        if last is not None:
            raise last
        return None

    return Parser(
        covers=(f"{kind.__module__}:{kind.__name__}.parse", *_WITHIN.get(kind, ())),
        run=run,
        raises=(ValueError,),
        worst=(*(DEEP if kind is Json else DEEP[:2]), *worst),
        samples=samples,
    )


def _field(field: Field) -> Parser[str]:
    return Parser(
        covers=("terrazzo.database.field:_reading_json",),
        run=field.parse,
        raises=(BadParameter,),
        worst=DEEP,
        samples=('{"a": [1, {"b": "\\\\u0000"}]}', "[]", '["1", 2]', "1,2"),
    )


def _template(text: str) -> object:
    check_template(text)
    return fill({"a": [text], "b": text}, {"object": ["x"], "time": 1}), list(names_in([text]))


PARSERS: list[Parser[str]] = [
    _parsed(Json, '{"a": 1}', "[1, [2]]", ""),
    _parsed(KeyList, '["a", 1]', "a, b", ""),
    _parsed(Names, '["a", "b"]', "a", ""),
    _parsed(VariableNames, '["a", "*"]', "a", "*"),
    _parsed(Topics, '["g/+/r", "a/#"]', "g/demo-1/r", worst=(lambda n: "/" * n, lambda n: "+/" * (n // 2) + "#")),
    _parsed(Keys, '["T", "P"]', "T"),
    _parsed(Kinds, '["records"]', "presence"),
    _parsed(Moment, "2024-02-29 12:00:00", "2024-02-29T12:00:00.5+01:00", worst=(lambda n: "2024-02-29 " + "0" * n,)),
    _parsed(DurationText, "5m", "1.5h", "60", worst=(lambda n: "1" + " " * n + "x", lambda n: "1." + "0" * n)),
    _parsed(
        Comparisons, '[["a", "=", 1], ["b", "like", "%x%"]]', "", worst=(lambda n: "[" + "[1]," * (n // 4) + "[1]]",)
    ),
    _parsed(Memberships, '["a", "1,2"]', '[["a", [1, 2]]]', worst=(lambda n: '["a", "' + "," * n + '"]',)),
    _parsed(Order, '["a", "desc"]', ""),
    _parsed(Attachments, "null"),
    _parsed(Email, '{"EmailSubject": "s", "EmailContent": "c", "EmailFile": [{"uid": "a"}]}'),
    _parsed(Sms, '{"msgdata": "x"}'),
    _parsed(Android, '{"Body": {"Ticker": "", "Title": "", "Text": "", "Remark": ""}, "Url": "", "DesText": ""}'),
    _parsed(
        Ios, '{"APS": {"AlertTitle": "", "AlertSubtitle": "", "AlertBody": ""}, "Extra": {"id": 1}, "DesText": ""}'
    ),
    _parsed(Template, '{"first": {"value": "x"}}'),
    _parsed(Recipients, '["a", 1]', "a", worst=(lambda n: "[" + ",".join(map(str, range(n // 8))) + "]",)),
    _parsed(
        EmailAddresses,
        '["a@b.c"]',
        "x.y@z",
        worst=(lambda n: "a" * n + "@", lambda n: "@" * n, lambda n: "a@" * (n // 2)),
    ),
    _parsed(Publishes, '[{"object_id": 1, "command": "c", "value": 1}]'),
    Parser(
        covers=("terrazzo.api.kernel.fields:parse_json_text",),
        run=parse_json_text,
        raises=(ValueError,),
        worst=DEEP,
        samples=('{"a": [1]}', "[]", "null"),
    ),
    _field(OBJECT.fields["addition"]),
    _field(OBJECT.fields["terminal_list"]),
    _field(RULE.fields["kinds"]),
    Parser(
        covers=("terrazzo.domain.certificates.authority:parse_authority",),
        run=parse_authority,
        raises=(ValueError,),
        worst=(
            lambda n: "-----BEGIN CERTIFICATE-----" * (n // 27),
            lambda n: "-----BEGIN CERTIFICATE-----\n" + "A" * n,
            lambda n: "-----BEGIN CERTIFICATE-----\n" + "MIIB" * (n // 4) + "\n-----END CERTIFICATE-----",
            lambda n: "-" * n,
        ),
        samples=(ClientCa("Sample").pem, f"text\n{ClientCa('Sample').pem}text"),
    ),
    Parser(
        covers=("terrazzo.database.field:_checking_json",),
        run=lambda text: structure("a").parse(msgspec.json.encode([text]).decode()),
        raises=(BadParameter,),
        worst=(lambda n: "\\" * n, lambda n: "\\u0000" * (n // 6), lambda n: "\\\\x" * (n // 3)),
        samples=("a\\u0000", "x"),
    ),
    Parser(
        covers=("terrazzo.userinfo:_USERINFO",),
        run=lambda text: (without_userinfo(text), without_user(text), shown_address(text), is_http_address(text)),
        worst=(lambda n: "/" * n, lambda n: "a//" + "b" * n, lambda n: "//@" * (n // 3), lambda n: "@" * n),
        samples=("ftp://user:password@host/file", "/path"),
    ),
    Parser(
        covers=("terrazzo.database.field:_parse_text",),
        run=check_storable,
        raises=(ValueError,),
        worst=(lambda n: "\0" * n, lambda n: "a" * n),
        samples=("text",),
    ),
    Parser(
        covers=(
            "terrazzo.metadata.definitions.registry:read_key_list",
            "terrazzo.metadata.definitions.rules:_read_list",
        ),
        run=lambda text: (read_key_list(text), RULE.fields["codes"].parse(text)),
        raises=(BadParameter,),
        worst=(lambda n: "," * n, lambda n: " ," * (n // 2), lambda n: " " * n),
        samples=("a, b", '["a"]'),
    ),
    Parser(
        covers=("terrazzo.metadata.definitions.registry:read_tags",),
        run=TERMINAL.fields["tags"].parse,
        raises=(BadParameter,),
        worst=(lambda n: "," * n, lambda n: " ," * (n // 2), lambda n: ",".join(map(str, range(n // 6)))),
        samples=("b, a", '["a"]'),
    ),
    Parser(
        covers=(
            "terrazzo.domain.template:_PLACEHOLDER",
            "terrazzo.metadata.definitions.rules:_PLACEHOLDER",
        ),
        run=_template,
        raises=(ValueError,),
        worst=(
            lambda n: "{" * n,
            lambda n: "{a" * (n // 2),
            lambda n: "{object}" * (n // 8),
            lambda n: "{" + "a" * n,
        ),
        samples=("{object}: {time}", "text {x.y}"),
    ),
    Parser(
        covers=("terrazzo.metadata.definitions.rules:_CLOCK",),
        run=check_clock,
        raises=(ValueError,),
        worst=(lambda n: "0" * n,),
        samples=("23:59", "00:00"),
    ),
    Parser(
        covers=("terrazzo.metadata.definitions.rules:check_url",),
        run=check_url,
        raises=(ValueError,),
        worst=(
            lambda n: "https://" + "a" * n,
            lambda n: "https://[" + ":" * n + "]",
            lambda n: "//" * (n // 2),
            lambda n: "http://h:" + "9" * n,
        ),
        samples=("https://host/path?x=1", "http://[::1]:80/"),
    ),
    Parser(
        covers=("terrazzo.api.operations.history.object_log:parse_place",),
        run=parse_place,
        raises=(BadParameter,),
        worst=(lambda n: "." * n, lambda n: "9" * n, lambda n: "1." * (n // 2)),
        samples=("1700000000000000.3.17", "0.0.0"),
    ),
    Parser(
        covers=("terrazzo.times:parse_time", "terrazzo.times:_SPACED"),
        run=parse_time,
        raises=(ValueError,),
        worst=(lambda n: "2024-02-29 12:00:00." + "0" * n, lambda n: "2" * n, lambda n: " " * n),
        samples=("2024-02-29 12:00:00", "2024-02-29T12:00:00.123456Z", "2024-W01-1T00"),
    ),
    Parser(
        covers=("terrazzo.mosaic.duration:parse_duration", "terrazzo.mosaic.duration:_SHAPE"),
        run=parse_duration,
        raises=(ValueError,),
        worst=(lambda n: "1" * n, lambda n: " " * n + "1", lambda n: "1" + " " * n + "x"),
        samples=("60", "5m", "1.5h"),
    ),
    Parser(
        covers=("terrazzo.api.operations.email_files:_UID",),
        run=lambda text: list(uids_of(text)),
        raises=(BadParameter,),
        worst=(*DEEP, lambda n: "0" * n, lambda n: ("0" * 31 + "x") * (n // 32)),
        samples=("0" * 32, '["/files/' + "a" * 32 + '"]', '{"uid": "' + "b" * 32 + '"}'),
    ),
    Parser(
        covers=("terrazzo.domain.file_kinds:clean_name",),
        run=lambda text: kind_of(clean_name(text), ("txt", "pdf")),
        raises=(BadParameter,),
        worst=(
            lambda n: "a" + "\u0315\u0300" * (n // 2),
            lambda n: ". " * (n // 2),
            lambda n: "/" * n,
            lambda n: "." * n + "txt",
        ),
        samples=("report.txt", "..\\x\\y.pdf"),
    ),
]
