"""Parsers of what comes on a connection before it is a request: lines, frames, heads, tokens, origins, credentials."""

from __future__ import annotations

import base64
import json
import warnings
from types import SimpleNamespace
from typing import Any

import msgspec
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, KeySet
from parser_kinds import Parser

from terrazzo.access.oidc import read_claims, read_keys
from terrazzo.access.tokens import MAX_TOKEN, Tokens
from terrazzo.api.kernel.column_reply import PLAIN_MEDIA_TYPE, column_form_of
from terrazzo.api.kernel.dispatch import Gateway, bearer_token
from terrazzo.api.kernel.traffic import Traffic
from terrazzo.api.operations.table import TABLE
from terrazzo.api.transports.bodies.frame_lengths import FrameLengths
from terrazzo.api.transports.influx_routes import token_of
from terrazzo.api.transports.known_heads import KnownHeads
from terrazzo.api.transports.lines import Lines, LineTooLong
from terrazzo.api.transports.mqtt_auth.routes import _basic_password
from terrazzo.api.transports.request_bounds import RequestBounds
from terrazzo.backup.key_sealing import KeySealer, PassphraseUnusable
from terrazzo.errors import NotAuthenticated, Unavailable
from terrazzo.metadata.definitions.registry import check_rsa_key
from terrazzo.ports.tracing import known_parent
from terrazzo_adapters.bridge.long_packets import LongPackets
from terrazzo_broker.message import traceparent_of
from terrazzo_broker.web_origin import AllowedOrigins, is_of_host, normal_origin

_KEY = ECKey.generate_key("P-256", {"kid": "a"})
_KEYS = KeySet([_KEY])
_TOKENS = Tokens(None, None, key=b"k" * 32, lifetime_s=60, session_s=60, clock=lambda: 0)  # type: ignore[arg-type]
_GATEWAY = Gateway(TABLE, SimpleNamespace(kept_answers=None), None, Traffic())  # type: ignore[arg-type]  # it only reads
_SEALER = KeySealer(b"a long passphrase")
_SEALED_HEAD = _SEALER.seal(b"", "x")[:20]  # with a salt whose key is known: making one takes a tenth of a second
_ORIGINS = AllowedOrigins(["https://console.example.com:443"])
_HEADS = KnownHeads(None)  # type: ignore[arg-type]
_TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_PIECES = (1, 7, 64 << 10)
"""Bytes that arrive at a time; one by one only some thousand, as each is a call."""


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signed(payload: bytes) -> str:
    """A token that the provider has signed, whatever is in it."""
    return jws.serialize_compact({"alg": "ES256", "kid": "a"}, payload, _KEY)


def _in_pieces(data: bytes) -> Any:
    """The data in pieces of each length in turn."""
    for size in _PIECES:
        part = data[: size << 12]
        yield [part[start : start + size] for start in range(0, len(part), size)]


def _lines(data: bytes) -> object:
    """As the connection does it: what is there is taken, and a line that is too long ends it."""
    found = []
    for pieces in _in_pieces(data):
        lines = Lines(1 << 14)
        try:
            for piece in pieces:
                lines.feed(piece)
                while (line := lines.next()) is not None:
                    found.append(line)
            lines.end()
            while (line := lines.next()) is not None:
                found.append(line)
        except LineTooLong:
            continue
        assert b"".join(found[-2:]).count(b"\n") == 0
    return found


def _frames(data: bytes) -> int:
    """What may go on, where all comes at once; byte by byte it is no less, and ends with the same frame's head."""
    whole = FrameLengths(1 << 14).feed(data)
    lengths = FrameLengths(1 << 14)
    for at in range(min(len(data), 1 << 12)):
        if not lengths.feed(data[at : at + 1]):
            assert at >= whole, "what is whole is let through"
            break
    return whole


def _head(data: bytes) -> object:
    for pieces in _in_pieces(data):
        bounds = RequestBounds()
        for piece in pieces:
            bounds.receive(piece)
        assert bounds.after_head <= len(data)
    return _HEADS.find(data)


def _long_packets(data: bytes) -> int:
    """What is kept of a packet, which came in one piece or in two."""
    packets = LongPackets(1 << 10)
    kept = packets.take(data[: len(data) // 2], len(data))
    kept += packets.take(data[len(data) // 2 :], len(data) - len(data) // 2)
    assert packets.kept <= 1 << 10
    return len(bytes(kept))


def _origin(text: str) -> object:
    return [normal_origin(text), is_of_host(text, text), is_of_host(text, "example.com"), text in _ORIGINS]


def _credentials(text: str) -> object:
    return bearer_token(text), token_of(text, [("p", text)]), _basic_password(text)


def _basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def _sent_keys(text: str) -> object:
    try:
        answer = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=list[Any])
    except (msgspec.MsgspecError, RecursionError):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # of a key that is too short
        return read_keys(answer)


PARSERS_OF_BYTES: list[Parser[bytes]] = [
    Parser(
        covers=("terrazzo.api.transports.lines:Lines.feed", "terrazzo.api.transports.lines:Lines._add"),
        run=_lines,
        worst=(
            lambda n: b"\n" * n,
            lambda n: b"a" * n,
            lambda n: b"\r" * n,
            lambda n: b"a\n" * (n // 2),
            lambda n: b"a" * 16_000 + b"\n" * n,
            lambda n: (b"a" * 16_000 + b"\n") * (n // 16_001),
        ),
        samples=(b'{"action": "ping"}\n{"action"', b"a\r\n\r\nb\n", b"\n"),
        floor_s=0.05,
    ),
    Parser(
        covers=("terrazzo.api.transports.bodies.frame_lengths:FrameLengths.feed",),
        run=_frames,
        worst=(
            lambda n: b"\x81\x80mask" * (n // 6),
            lambda n: b"\x01\x81maskx" + b"\x00\x80mask" * (n // 6),
            lambda n: b"\x89\x80mask" * (n // 6),
            lambda n: b"\x81\xfe\x00\x00mask" * (n // 8),
            lambda n: b"\x81\xff" + bytes(8) + b"mask" + b"\x81\x00" * (n // 2),
            lambda n: b"\xff" * n,
            lambda n: b"\x81" * n,
        ),
        samples=(
            b"\x81\x82maskab",
            b"\x01\x80mask\x80\x81maskx",
            b"\x81\xfe\x00\x7emask" + b"x" * 126,
            b"\x88\x80mask",
        ),
    ),
    Parser(
        covers=(
            "terrazzo.api.transports.request_bounds:RequestBounds.receive",
            "terrazzo.api.transports.request_bounds:RequestBounds._find_end",
        ),
        run=_head,
        worst=(
            lambda n: b"\r\n" * (n // 2),
            lambda n: b"\r\n\r" * (n // 3),
            lambda n: b"\r" * n,
            lambda n: b"GET / HTTP/1.1\r\n" + b"a" * n,
        ),
        samples=(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"),
    ),
    Parser(
        covers=("terrazzo_broker.message:traceparent_of",),
        run=traceparent_of,
        worst=(
            lambda n: b"\x26\x00\x0b" * (n // 3),
            lambda n: b"\x26\x00\x0btraceparent\x00" * (n // 15),
            lambda n: b"\x26\x00\x0btraceparent\x00\x37" + b"\xff" * n,
        ),
        samples=(b"\x26\x00\x0btraceparent\x00\x37" + _TRACEPARENT.encode(), b"\x09\x00\x01a"),
    ),
    Parser(
        covers=("terrazzo_adapters.bridge.long_packets:LongPackets.take",),
        run=_long_packets,
        worst=(lambda n: b"a" * n,),
        samples=(b"\x00\x01a", b"a" * 2_000),
    ),
    Parser(
        covers=("terrazzo.api.kernel.dispatch:Gateway.read",),
        run=_GATEWAY.read,
        worst=(
            lambda n: b"[" * n,
            lambda n: b'{"a":' * (n // 5),
            lambda n: b'{"action":"' + b"a" * n + b'"}',
            lambda n: b'{"actionid":' + b"[" * n,
            lambda n: b'{"Authorization":' + b"9" * n + b"}",
            lambda n: b"{" + b'"action":1,' * (n // 11) + b'"x":1}',
            lambda n: b'{"action":"\\u0061' + b"\\" * n,
            lambda n: b" " * n,
        ),
        samples=(b'{"action": "ping", "actionid": 7, "Authorization": "Bearer x"}', b'{"strict": 1}', b"{}", b""),
    ),
    Parser(
        covers=("terrazzo.backup.key_sealing:KeySealer.open",),
        run=lambda data: _SEALER.open(_SEALED_HEAD + data if data[:4] != b"TZK1" else data[:31], "x"),
        raises=(PassphraseUnusable,),
        worst=(lambda n: b"n" * n,),
        samples=(b"n" * 12 + bytes(16), b"TZK1", b"n"),
    ),
]

PARSERS_OF_TEXT: list[Parser[str]] = [
    Parser(
        covers=("terrazzo.ports.tracing:known_parent",),
        run=known_parent,
        worst=(lambda n: "-" * n, lambda n: "0" * n, lambda n: _TRACEPARENT + "-" * n),
        samples=(_TRACEPARENT, "-" * 55),
    ),
    Parser(
        covers=(
            "terrazzo_broker.web_origin:normal_origin",
            "terrazzo_broker.web_origin:is_of_host",
            "terrazzo_broker.web_origin:AllowedOrigins.__contains__",
        ),
        run=_origin,
        worst=(
            lambda n: "https://" + ":443" * (n // 4),
            lambda n: "://" * (n // 3),
            lambda n: "https" * (n // 5),
            lambda n: "https://" + "\u0130" * n,
            lambda n: ":" * n,
        ),
        samples=("https://console.example.com:443", "http://example.com:80", "null", "HTTPS://EXAMPLE.COM", "://x"),
    ),
    Parser(
        covers=("terrazzo.api.kernel.column_reply:column_form_of",),
        run=column_form_of,
        worst=(lambda n: "," * n, lambda n: ";" * n, lambda n: " " * n, lambda n: "a/b;q=1," * (n // 8)),
        samples=(PLAIN_MEDIA_TYPE, "text/html, application/json;q=0.9, */*", f"a, {PLAIN_MEDIA_TYPE};q=1"),
    ),
    Parser(
        covers=(
            "terrazzo.api.transports.influx_routes:token_of",
            "terrazzo.api.transports.mqtt_auth.routes:_basic_password",
        ),
        run=_credentials,
        worst=(
            lambda n: "Basic " + "A" * n,
            lambda n: "Basic " + "=" * n,
            lambda n: _basic(":" * (n // 2)),
            lambda n: "Token " + ":" * n,
            lambda n: "Bearer" + " " * n,
            lambda n: "bearer " * (n // 7),
        ),
        samples=("Bearer abc", "Token user:abc", _basic("user:password"), "Basic \u00e4", "basic", ""),
    ),
    Parser(
        covers=("terrazzo.access.tokens:Tokens._read_signed",),
        run=_TOKENS._read_signed,
        raises=(NotAuthenticated,),
        worst=(
            lambda n: "." * n,
            lambda n: _base64(b"[" * n) + ".e30.x",
            lambda n: _base64(b'{"alg":"HS256"}') + "." + "A" * n + ".x",
            lambda n: _base64(b'{"alg":["HS256"],"crit":["b64"],"b64":false}') + ".e30." + "A" * n,
        ),
        samples=(
            ".".join((_base64(b'{"alg":"HS256","typ":"JWT"}'), _base64(b'{"sub":"1"}'), "AAAA")),
            ".".join((_base64(b'{"alg":"none"}'), _base64(b"{}"), "")),
            ".".join((_base64(b'{"alg":{},"kid":[]}'), "e30", "AA")),
        ),
        most=MAX_TOKEN,
        floor_s=0.02,
    ),
    Parser(
        covers=("terrazzo.access.oidc:read_claims",),
        run=lambda text: read_claims(text if text.count(".") == 2 else _signed(text.encode("utf-8", "replace")), _KEYS),
        raises=(NotAuthenticated,),
        worst=(
            lambda n: "[" * n,
            lambda n: '{"a":' * (n // 5),
            lambda n: '{"exp":' + "9" * min(n, 4_000) + "}",
            lambda n: "." * n,
            lambda n: _base64(b'{"alg":"ES256","x":' + b"[" * n) + ".e30.x",
            lambda n: _base64(b'{"alg":"ES256"}') + "." + "A" * n + ".AA",
        ),
        samples=(
            '{"sub": "1", "aud": ["a"], "exp": 1}',
            "[1]",
            ".".join((_base64(b'{"alg":"ES256","kid":5,"crit":5,"jwk":{}}'), "e30", "AA")),
        ),
        most=32_768,
    ),
    Parser(
        covers=("terrazzo.access.oidc:read_keys",),
        run=_sent_keys,
        raises=(Unavailable,),
        worst=(
            lambda n: json.dumps([{"kty": "RSA", "n": "AQAB" * (n // 4), "e": "AQAB"}]),
            lambda n: json.dumps([{"kty": "EC", "crv": "P-256", "x": "A" * n, "y": "A"}]),
            lambda n: json.dumps([{"kty": "EC", "x": [[]] * (n // 4)}]),
            lambda n: json.dumps([{"kty": "RSA"}] * (n // 20)),
        ),
        samples=(
            json.dumps([_KEY.as_dict(private=False)]),
            '[{"kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "sig"}]',
            '[{"kty": "EC", "crv": "P-256", "x": 5}, 7, {"kty": []}]',
        ),
        most=65_536,  # what is read of an answer
    ),
    Parser(
        covers=("terrazzo.metadata.definitions.registry:check_rsa_key",),
        run=check_rsa_key,
        raises=(ValueError,),
        worst=(
            lambda n: "-----BEGIN RSA PRIVATE KEY-----\n" + "A" * n + "\n-----END RSA PRIVATE KEY-----",
            lambda n: "-----BEGIN " * (n // 11),
            lambda n: "-" * n,
            lambda n: "-----BEGIN PRIVATE KEY-----\n" + "MIIA" * (n // 4) + "\n-----END PRIVATE KEY-----",
        ),
        samples=(
            _KEY.as_pem().decode(),
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----",
        ),
        most=16_384,  # characters of the field
    ),
]
