"""Parsers of what comes with a request: query strings, headers, conditions, files."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from parser_kinds import Parser

from terrazzo.access.oidc import read_provider
from terrazzo.access.single_sign_on import role_of, username_of
from terrazzo.api.kernel.components import query_values
from terrazzo.api.kernel.long_requests.values import values_in
from terrazzo.api.kernel.replica.position import ReadPosition
from terrazzo.api.transports.bodies.forms import _MEDIA_TYPE, clean_name, read_multipart, read_urlencoded
from terrazzo.api.transports.bodies.inflate import BadCoding, Inflater
from terrazzo.api.transports.bodies.multipart import BadForm, boundary_of, parse_parameters
from terrazzo.api.transports.byte_ranges import choose_range
from terrazzo.api.transports.console.policy_reports import read_policy_report
from terrazzo.api.transports.console.session_cookie import _TOKEN
from terrazzo.api.transports.mqtt_auth.fields import BadQuestion, address_of, read_fields
from terrazzo.bulk.rows import read_upload
from terrazzo.config.sso import SsoSection
from terrazzo.errors import BadParameter, NotAuthenticated, Unavailable
from terrazzo.files.folder import _NAME
from terrazzo.loop_pauses import at_once
from terrazzo_adapters.messenger.http import _CHARSET
from terrazzo_broker.listeners.proxy_protocol import SIGNATURE_2, ProxyError, parse_header


def _inflated(data: bytes) -> int:
    """A body in both codings, of at most a megabyte."""
    size = 0
    for coding in ("gzip", "deflate"):
        inflater = Inflater(coding)
        size += len(inflater.step(data))
        while inflater.has_more and size < 2**20:
            size += len(inflater.step())
        inflater.end()
    return size


def _multipart(data: bytes) -> object:
    return read_multipart(data, "multipart/form-data; boundary=x", takes_files=True)


def _question(data: bytes) -> object:
    """As JSON and as a form; one of them is none."""
    found = []
    for media_type in ("application/json", "application/x-www-form-urlencoded"):
        try:
            fields = read_fields(data, media_type, "utf-8")
        except BadQuestion as error:
            last = error
        else:
            found.append((fields, address_of(fields, "")))
    if not found:
        raise last
    return found


def _range(text: str) -> object:
    """A header may be 8 KiB long."""
    headers = {"Range": text, "If-None-Match": text, "If-Range": text}
    return [choose_range({name: text}, size=1_000, etag="e") for name in headers]


def _rows(data: bytes) -> object:
    return sum(1 for _ in read_upload(data).rows)


_DISPOSITION = b'Content-Disposition: form-data; name="a"'

_PROVIDER = (
    '{"issuer": "https://x", "authorization_endpoint": "https://x/a", "token_endpoint": "https://x/t", '
    '"jwks_uri": "https://x/k"}'
)
_SSO = SsoSection(role_claim="realm_access.roles", roles={"ops": "operator"}, username_claim="email")


def _of_provider(text: str) -> object:
    """What a provider of single sign-on says of itself, or of a user."""
    try:
        answer = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        answer = {}
    if "issuer" in answer:
        return read_provider(answer, "https://x")
    return role_of(answer, _SSO), username_of(answer, _SSO)


PARSERS_OF_TEXT: list[Parser[str]] = [
    Parser(
        covers=("terrazzo.domain.payload:_EXTREME",),
        run=lambda data: at_once(values_in(data, 30_000)),
        worst=(
            lambda n: b"[" + b"1e300," * (n // 6),
            lambda n: b"1e" + b"0" * n,
            lambda n: b"1e0" * (n // 3),
            lambda n: b'"' + b"\\" * n,
            lambda n: b'"a",' * (n // 4),
            lambda n: b'"[",' * (n // 4),
        ),
        samples=(b'[1e300, -1.5E-300, "a,[", "[1,2]"]', b'{"a": [1, 2, {"b": "\\u005b"}]}'),
    ),
    Parser(
        covers=("terrazzo.api.kernel.components:query_values",),
        run=lambda text: query_values(parse_qsl(text)),
        worst=(
            lambda n: "a=1&" * (n // 4),
            lambda n: "&".join(f"{i}=1" for i in range(n // 8)),
            lambda n: "a=1&b=2&" * (n // 8),
        ),
        samples=("a=1&b=2&a=3", "page_size=10&x="),
    ),
    Parser(
        covers=(
            "terrazzo.api.kernel.replica.position:ReadPosition.parse",
            "terrazzo.api.kernel.replica.position:_SHAPE",
        ),
        run=ReadPosition.parse,
        raises=(ValueError,),
        worst=(lambda n: "1" * n, lambda n: " " * n, lambda n: "1." * (n // 2)),
        samples=("1234.56", "0.0", " 12.7 "),
    ),
    Parser(
        covers=(
            "terrazzo.api.transports.byte_ranges:choose_range",
            "terrazzo.api.transports.byte_ranges:_RANGE",
        ),
        run=_range,
        worst=(
            lambda n: "bytes=" + " " * n,
            lambda n: "bytes=0-" + " " * n + "x",
            lambda n: " " * n,
            lambda n: "bytes=" + "0" * n,
            lambda n: "bytes" + " " * n,
            lambda n: ",W/" * (n // 3),
        ),
        samples=("bytes=0-10", " bytes = 5 - ", "bytes=-7", '"e"', 'W/"e", "f"', "*"),
    ),
]

PARSERS_OF_TEXT += [
    Parser(
        covers=(
            "terrazzo.api.transports.bodies.forms:_MEDIA_TYPE",
            "terrazzo.api.transports.bodies.forms:re.split",
        ),
        run=lambda text: (_MEDIA_TYPE.fullmatch(text), clean_name(text)),
        worst=(
            lambda n: "a" * n,
            lambda n: "a/" * (n // 2),
            lambda n: "\\" * n,
            lambda n: "\0" * n,
        ),
        samples=("text/plain", "a/b/../c.txt", "..\\x.pdf"),
    ),
    Parser(
        covers=(
            "terrazzo.api.transports.bodies.multipart:parse_parameters",
            "terrazzo.api.transports.bodies.multipart:boundary_of",
            "terrazzo.api.transports.bodies.multipart:_PARAMETER",
            "terrazzo.api.transports.bodies.multipart:_ESCAPE",
        ),
        run=lambda text: (parse_parameters(text), boundary_of(text)),
        raises=(BadForm,),
        worst=(
            lambda n: ";" * n,
            lambda n: ";a" * (n // 2),
            lambda n: "x;" + " " * n + "a",
            lambda n: "x;" + "a" * n,
            lambda n: 'x;a="' + "\\" * n,
            lambda n: 'x;a="\\";' * (n // 8),
            lambda n: "x;a=" * (n // 4),
        ),
        samples=('form-data; name="a"; filename="b.txt"', "multipart/form-data; boundary=xyz", 'x; a="\\""; b=c'),
    ),
    Parser(
        covers=("terrazzo.access.oidc:read_provider",),
        run=_of_provider,
        raises=(Unavailable, NotAuthenticated),
        worst=(
            lambda n: '{"issuer": "' + "x" * n + '"}',
            lambda n: "[" * n,
            lambda n: '{"realm_access":' * (n // 16),
            lambda n: '{"realm_access": {"roles": [' + '"ops",' * (n // 6) + '"ops"]}}',
            lambda n: _PROVIDER.replace("}", ', "token_endpoint_auth_methods_supported": [' + "0," * (n // 2) + "0]}"),
        ),
        samples=(_PROVIDER, '{"realm_access": {"roles": ["ops"]}, "email": "a@b", "email_verified": true}', "7", "{}"),
        most=65_536,  # what is read of an answer
    ),
    Parser(
        covers=("terrazzo_adapters.messenger.http:_CHARSET",),
        run=_CHARSET.search,
        worst=(lambda n: "charset" * (n // 7), lambda n: "charset=" * (n // 8), lambda n: 'charset="' * (n // 9)),
        samples=("text/html; charset=gbk", 'text/html; charset="utf-8"'),
    ),
    Parser(
        covers=("terrazzo.api.transports.console.session_cookie:_TOKEN",),
        run=_TOKEN.fullmatch,
        worst=(lambda n: "a" * n, lambda n: "a." * (n // 2), lambda n: "a" * n + " "),
        samples=("eyJ.e30.x", "", "a b"),
    ),
    Parser(
        covers=("terrazzo.api.transports.console.policy_reports:read_policy_report",),
        run=lambda text: read_policy_report(text.encode("utf-8", "surrogatepass")),
        worst=(
            lambda n: "[" * n,
            lambda n: '{"csp-report":' * (n // 14),
            lambda n: '{"csp-report": {"effective-directive": "' + "x" * n + '"}}',
        ),
        samples=(
            '{"csp-report": {"effective-directive": "script-src", "blocked-uri": "x"}}',
            "7",
            "{}",
            '{"csp-report": 1}',
        ),
        most=8_192,  # what is read of a report
    ),
    Parser(
        covers=("terrazzo.files.folder:_NAME",),
        run=_NAME.fullmatch,
        worst=(lambda n: "0" * n,),
        samples=("0" * 32, "../etc"),
    ),
]

PARSERS_OF_BYTES: list[Parser[bytes]] = [
    Parser(
        covers=(
            "terrazzo_broker.listeners.proxy_protocol:parse_header",
            "terrazzo_broker.listeners.proxy_protocol:_parse_line",
            "terrazzo_broker.listeners.proxy_protocol:_parse_binary",
        ),
        run=parse_header,
        raises=(ProxyError,),
        worst=(
            lambda n: b"PROXY TCP4 " + b"1 " * n,
            lambda n: b"PROXY UNKNOWN" + b"\r" * n,
            lambda n: SIGNATURE_2 + b"\x21\x11\x10\x00" + bytes(n),
        ),
        samples=(
            b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 1883\r\n\x10",
            b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n",
            b"PROXY UNKNOWN\r\n",
            SIGNATURE_2 + b"\x21\x11\x00\x0c" + bytes(12) + b"\x10",
            SIGNATURE_2 + b"\x20\x00\x00\x00",
        ),
    ),
    Parser(
        covers=(
            "terrazzo.api.transports.bodies.forms:read_multipart",
            "terrazzo.api.transports.bodies.multipart:MultipartParser.feed",
            "terrazzo.api.transports.bodies.multipart:_part",
        ),
        run=_multipart,
        raises=(BadForm,),
        worst=(
            lambda n: b"\r\n--x" * (n // 5),
            lambda n: b"--x\r\n" + b"a" * n,
            lambda n: b"\r\n--" * (n // 4),
            lambda n: b"--x\r\n" + _DISPOSITION + b"\r\n\r\n" + b"\r\n--" * (n // 4) + b"\r\n--x--",
            lambda n: b"--x\r\n" + b"a:b\r\n" * (n // 5),
            lambda n: (b"--x\r\n" + _DISPOSITION + b"\r\n\r\n\r\n") * (n // 50) + b"--x--",
        ),
        samples=(
            b"--x\r\n" + _DISPOSITION + b"\r\n\r\nvalue\r\n--x--\r\n",
            b"--x\r\n" + _DISPOSITION + b'; filename="b"\r\nContent-Type: text/plain\r\n\r\nvalue\r\n--x--',
        ),
    ),
    Parser(
        covers=("terrazzo.api.transports.bodies.forms:read_urlencoded",),
        run=lambda data: read_urlencoded(data, "utf-8"),
        raises=(BadForm,),
        worst=(
            lambda n: b"a=1&" * (n // 4),
            lambda n: b"%" * n,
            lambda n: b"a=" + b"+" * n,
            lambda n: b"&" * n,
            lambda n: b"a=" + b"%ff" * (n // 3),
        ),
        samples=(b"a=1&data=%7B%7D", b"a=%C3%A4&b"),
    ),
    Parser(
        covers=("terrazzo.api.transports.mqtt_auth.fields:read_fields",),
        run=_question,
        raises=(BadQuestion,),
        worst=(
            lambda n: b"a=1&" * (n // 4),
            lambda n: b"[" * n,
            lambda n: b'{"a":' * (n // 5),
            lambda n: b'{"a":"' + b"\\u0061" * (n // 6) + b'"}',
            lambda n: b"{" + b'"a":1,' * (n // 6) + b'"b":0}',
            lambda n: b'{"a":' + b"9" * n + b"}",
        ),
        samples=(b'{"clientid":"t1","username":"u","acc":1,"topic":null}', b"clientid=t1&username=u&password=%20"),
        most=2**14,
        floor_s=0.02,
    ),
    Parser(
        covers=("terrazzo.api.transports.bodies.inflate:Inflater.step",),
        run=_inflated,
        raises=(BadCoding,),
        worst=(
            lambda n: gzip.compress(bytes(n * 64)),
            lambda n: gzip.compress(b"") * (n // 20),
            lambda n: b"\x1f\x8b" * (n // 2),
        ),
        samples=(gzip.compress(b"{}"), zlib.compress(b"{}"), zlib.compress(b"a" * 1_000)[2:-4]),
    ),
    Parser(
        covers=(
            "terrazzo.bulk.rows:read_upload",
            "terrazzo.bulk.rows:read_text",
            "terrazzo.bulk.rows:read_objects",
            "terrazzo.bulk.rows:decoded",
            "terrazzo.bulk.rows:_read_csv",
            "terrazzo.bulk.rows:_JSON_BLANKS",
        ),
        run=_rows,
        raises=(BadParameter,),
        worst=(
            lambda n: ",".join(map(str, range(n // 7))).encode(),
            lambda n: b"," * n,
            lambda n: b"a\n" + b'"' * n,
            lambda n: b"a,b\n" + b"1,2\n" * (n // 4),
            lambda n: b"[" * n,
            lambda n: b"{" * n,
            lambda n: b'{"a":1}\n' * (n // 8),
            lambda n: b"\n" * n,
            lambda n: b" " * n,
            lambda n: b"a\n" + b"=" * n,
            lambda n: b"[" + b",".join([b'{"a":1}'] * (n // 8)) + b"]",
        ),
        samples=(
            b"a,b\n1,2\n",
            b'sep=;\na;b\r\n\'=1;"x\ny"\r\n',
            b'[{"a": 1}, {"a": [2]}]',
            b'{"a": 1}\n{"b": null}\n',
            "a\tb\nä\t2".encode("utf-16"),
            json.dumps([{"a": "é"}]).encode(),
        ),
    ),
]
