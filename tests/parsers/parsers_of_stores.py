"""Parsers of what databases and providers answer, and of what is kept of foreign input."""

from __future__ import annotations

import json

import msgspec
import numpy as np
from parser_kinds import Parser

from terrazzo.backup.manifest import BackupDamaged, id_of, parse_manifest
from terrazzo.client.errors import UnexpectedAnswer
from terrazzo.client.exchange import parse_envelope
from terrazzo.csv_text import bare_text, guard_formula
from terrazzo.messenger.channels import _member, _read
from terrazzo.messenger.masking import Mask, secrets_of, shown_url
from terrazzo.ports.store import Record
from terrazzo.replication.checked_bytes import FrameDamaged, checked_bytes
from terrazzo.replication.frame import (
    HEADER_BYTES,
    Assembly,
    appended,
    decode_frame,
    decode_operation,
    encode_frames,
)
from terrazzo.replication.in_frame import InBatch, InFrame, InTopic, Numbered, decode_in_frame, encode_in_frame
from terrazzo.replication.node_message import NodeMessageDamaged
from terrazzo.replication.peer_frame import (
    PeerAnswer,
    PeerFrame,
    PeerMessage,
    decode_peer_answer,
    decode_peer_frame,
    encode_peer_answer,
    encode_peer_frame,
)
from terrazzo.replication.retained_change import RetainedChange, decode_retained, encode_retained
from terrazzo.replication.session_record import (
    QueuedMessage,
    SessionRecord,
    WillRecord,
    decode_group,
    decode_messages,
    decode_session,
    decode_will,
    encode_group,
    encode_session,
    encode_will,
)
from terrazzo_adapters.columns.bodies import Bodies
from terrazzo_adapters.columns.decoded import decode_columns
from terrazzo_adapters.columns.flat_maps import find_values
from terrazzo_adapters.columns.points import carrying, parse_points, values_reader
from terrazzo_adapters.influxdb.lines import LinePoint, body_text, encode_line, parse_body, parse_tie
from terrazzo_adapters.influxdb.naming import KINDS, condition, field_name, identifier, literal, series_name, tag_values
from terrazzo_adapters.influxdb.server import Refused, _text, _version_in

MANIFEST = (
    b'{"format": 1, "id": "x", "began_us": 1, "held_ms": 1.5, "version": "1", "database": "sqlite", '
    b'"store": "embedded", "keys": "sealed", "files": [{"path": %s, "size": 1, "sha256": "%s"}]}'
)


def _line(data: bytes) -> object:
    """A terminal's body in both databases, in line protocol and back, and its points."""
    for series in ("g/T1/r", "m/1"):
        encode_line(LinePoint(series, 1, data, 1, 0), writer="w", without=set())
    assert parse_body(body_text(data)) == data
    keys = ("a", "b")
    find_values(Bodies.of([data[:512]] * 2), keys)
    columns = decode_columns(np.zeros(2, np.int64), Bodies.of([data] * 2), keys)
    return parse_points(data), values_reader(keys)([data]), carrying([data], {*keys}), columns


def _name(text: str) -> object:
    """A topic's or a point's name on its way to the server, and back."""
    series = f"g/{text}"
    found = series_name(KINDS[0], dict(tag_values(series)))
    return found, condition(series), identifier(field_name(text)), literal(text)


def _refusal(data: bytes) -> object:
    """What the server says of lines that it doesn't take."""
    refused = Refused(_text(data))
    return refused.expired, refused.field, _version_in(data)


def _masked(text: str) -> object:
    url, body = f"https://host/{text}", {"key": text, "list": [text]}
    mask = Mask(secrets_of(url, {"X-Key": text}, body))
    return mask.hide(text * 2), shown_url(text)


def _waiting_messages(data: bytes) -> list[QueuedMessage]:
    return decode_messages(decode_group(data))


PARSERS_OF_BYTES: list[Parser[bytes]] = [
    Parser(
        covers=(
            "terrazzo_adapters.columns.points:parse_points",
            "terrazzo_adapters.columns.decoded:decode_columns",
            "terrazzo_adapters.influxdb.lines:parse_body",
        ),
        run=_line,
        worst=(
            lambda n: b"{" * n,
            lambda n: b'{"a":' * (n // 5),
            lambda n: b'{"a":' * 31 + b"{" + b",".join(b'"p%d":1' % i for i in range(n // 12)) + b"}" + b"}" * 31,
            lambda n: b'{"a":"' + b'\\"' * (n // 2) + b'"}',
            lambda n: b"\x81\xa1a" * (n // 3),
            lambda n: b'{"a":' + b"9" * (n // 2) + b"}",
        ),
        samples=(
            b'{"a": 1, "b": {"c": true, "d": "x y,=z"}}',
            msgspec.msgpack.encode({"a": 1.5, "b": {"c": None}}),
            msgspec.msgpack.encode({"a": float("nan"), 1: 2}),
            b"\xc1",
        ),
    ),
    Parser(
        covers=(
            "terrazzo_adapters.influxdb.server:_PERMANENT",
            "terrazzo_adapters.influxdb.server:_DROPPED",
            "terrazzo_adapters.influxdb.server:_CONFLICT",
        ),
        run=_refusal,
        worst=(
            lambda n: b'input field "' * (n // 13),
            lambda n: b"beyond retention policy dropped=" * (n // 32),
            lambda n: b'{"error":"' + b"a" * n + b'"}',
            lambda n: b"[" * n,
            lambda n: b"\xff" * n,
        ),
        samples=(
            b'{"error":"partial write: field type conflict: input field \\"a\\" on measurement \\"grid\\""}',
            b'{"error":"partial write: points beyond retention policy dropped=3"}',
            b'{"version": "2.7.1"}',
            b"not found",
        ),
    ),
    Parser(
        covers=("terrazzo.messenger.channels:_read",),
        run=lambda data: _member(_read(data.decode("utf-8", "replace")), "a.b"),
        worst=(lambda n: b"[" * n, lambda n: b'{"a":' * (n // 5), lambda n: b"9" * n),
        samples=(b'{"a": {"b": "OK"}}', b'{"a": {"b": [1]}}', b"<html>"),
    ),
    Parser(
        covers=("terrazzo.client.exchange:parse_envelope",),
        run=parse_envelope,
        raises=(UnexpectedAnswer,),
        worst=(lambda n: b"[" * n, lambda n: b'{"a":' * (n // 5), lambda n: b" " * n),
        samples=(b'{"code": 200, "info": "", "result": {}}', json.dumps({"code": 500}).encode("utf-16")),
    ),
]

_FRAMES = encode_frames(
    appended([Record("g/a/t", 5, b'{"a": 1}'), Record("m/1", 6, b'{"b": 2}')], {"state/1": b"x", "labels/2": None}),
    epoch=1,
    number=2,
    most_bytes=1 << 20,
)


_IN_FRAME = encode_in_frame(
    Numbered(
        1,
        2,
        InFrame(
            "f1",
            [InTopic("g/t/r", "g/t/r", "t", "r", "x/t", answers=False)],
            [InBatch("t", "1", 0, 5, [0, 0], [b"{}", b"?"], {0: b"c"}, {1: "can't be read"})],
        ),
    )
)


_PEER_FRAME = PeerFrame(
    1,
    "f1",
    5,
    6,
    7,
    True,
    True,
    [("1", "g/#")],
    [("1", "a/+")],
    [PeerMessage("1", b"g/t/r", b"{}", 1, shared="$share/g/#")],
)


def _checked_in(body: bytes) -> bytes:
    """A frame of a front whose checksum fits what is in it."""
    return checked_bytes(b"TZi", 1, bytes(16) + body)


PARSERS_OF_BYTES += [
    Parser(
        covers=("terrazzo.replication.frame:decode_frame",),
        run=lambda data: Assembly().add(decode_frame(data)),
        raises=(FrameDamaged,),
        worst=(lambda n: b"TZo\x01" + b"\0" * n, lambda n: b"x" * n),
        samples=tuple(_FRAMES),
    ),
    Parser(
        covers=("terrazzo.replication.frame:decode_operation",),
        run=decode_operation,
        raises=(FrameDamaged,),
        worst=(
            lambda n: b"\x91" * n,
            lambda n: b"\x94\x03\x05" + b"\x91" * n,
            lambda n: b"\x94\x01\xdd" + n.to_bytes(4, "big") + b"\xa1a" * (n // 2),
            lambda n: b"\x94\x01\x90\xdd" + (n // 4).to_bytes(4, "big") + b"\x93\0\0\xc4\0" * (n // 5) + b"\x80",
        ),
        samples=(_FRAMES[0][HEADER_BYTES:], msgspec.msgpack.encode([3, 5]), msgspec.msgpack.encode([0, "a", "1"])),
    ),
    Parser(
        covers=("terrazzo.replication.in_frame:decode_in_frame",),
        run=decode_in_frame,
        raises=(FrameDamaged,),
        worst=(
            lambda n: _checked_in(b"\x91" * n),
            lambda n: _checked_in(b"\x95\xa1f\x90\x90\x90" + b"\x91" * n),
            lambda n: _checked_in(
                b"\x93\xa1f\x90\xdd" + (n // 8).to_bytes(4, "big") + b"\x96\xa0\xa0\0\0\x90\x90" * (n // 8)
            ),
            lambda n: b"TZi\x01" + b"\0" * n,
        ),
        samples=(_IN_FRAME,),
    ),
    Parser(
        covers=(
            "terrazzo.replication.peer_frame:decode_peer_frame",
            "terrazzo.replication.node_message:VersionedMessages.decode",
        ),
        run=decode_peer_frame,
        raises=(NodeMessageDamaged,),
        worst=(
            lambda n: b"\x91" * n,
            lambda n: b"\x9b\x01\xa1f\x01\x01\x01\xc2\xc2\x90\x90\x90" + b"\x91" * n,
            lambda n: (
                b"\x97\x01\xa1f\x01\x01\x01\xc3\xc3\xdd" + (n // 3).to_bytes(4, "big") + b"\x92\xa0\xa0" * (n // 3)
            ),
        ),
        samples=(encode_peer_frame(_PEER_FRAME),),
    ),
    Parser(
        covers=(
            "terrazzo.replication.peer_frame:decode_peer_answer",
            "terrazzo.replication.node_message:NodeMessages.decode",
        ),
        run=decode_peer_answer,
        raises=(NodeMessageDamaged,),
        worst=(lambda n: b"\x91" * n, lambda n: b"\x92\0\xcf" + b"\0" * n),
        samples=(encode_peer_answer(PeerAnswer(1, 7)),),
    ),
    Parser(
        covers=("terrazzo.replication.retained_change:decode_retained",),
        run=decode_retained,
        raises=(NodeMessageDamaged,),
        worst=(lambda n: b"\x91" * n, lambda n: b"\x94\x01\xa1x\xdb" + n.to_bytes(4, "big") + b"a" * n + b"\xc4\0"),
        samples=(encode_retained(RetainedChange(1, "1", "g/t/r", b"{}", 1, b"", 5, "t")),),
    ),
    Parser(
        covers=("terrazzo.replication.session_record:decode_session",),
        run=decode_session,
        raises=(NodeMessageDamaged,),
        worst=(
            lambda n: b"\x91" * n,
            lambda n: (
                b"\x99\x01\xa1x\xa1y\x05\xa1f\x01\x00\x00\xdd"
                + (n // 3).to_bytes(4, "big")
                + b"\x92\xa0\x01" * (n // 3)
            ),
        ),
        samples=(encode_session(SessionRecord(1, "t", "1", 7, "f", 3, 60, 0, [], [5], 65_536, [(1, 65_537)])),),
    ),
    Parser(
        covers=("terrazzo.replication.session_record:decode_will",),
        run=decode_will,
        raises=(NodeMessageDamaged,),
        worst=(lambda n: b"\x91" * n, lambda n: b"\x97\x01\xdb" + n.to_bytes(4, "big") + b"a" * n),
        samples=(encode_will(WillRecord(1, "t", "f", 3, 0, 0, b"{}")),),
    ),
    Parser(
        covers=(
            "terrazzo.replication.session_record:decode_group",
            "terrazzo.replication.session_record:decode_messages",
            "terrazzo.embedded.sessions.feeder:Feeder.decode",
        ),
        run=_waiting_messages,
        raises=(NodeMessageDamaged,),
        worst=(
            lambda n: b"\x95\x01\x01\x01\x01" + b"\x91" * n,
            lambda n: b"\x95\x01\x01\x01\x01\xdd" + (n // 6).to_bytes(4, "big") + b"\x93\xc4\0\xc4\0\1" * (n // 6),
        ),
        samples=(encode_group(7, [QueuedMessage(b"g/t/r", b"{}", 1)]),),
    ),
    Parser(
        covers=("terrazzo.backup.manifest:parse_manifest", "terrazzo.backup.manifest:_HASH"),
        run=parse_manifest,
        raises=(BackupDamaged,),
        worst=(
            lambda n: b"[" * n,
            lambda n: MANIFEST % (b'"/..' + b"/.." * (n // 3) + b'"', b"a" * 64),
            lambda n: MANIFEST % (b'"a"', b"a" * n),
        ),
        samples=(MANIFEST % (b'"series/1.sst"', b"a" * 64), b"{}"),
    ),
    Parser(
        covers=("terrazzo.backup.manifest:_ID",),
        run=lambda data: id_of(data.decode("utf-8", "replace")),
        worst=(lambda n: b"backups/" + b"2" * n, lambda n: b"backups/20260101T000000Z-" + b"1" * n + b".json"),
        samples=(b"backups/20260101T000000Z.json", b"backups/x"),
    ),
]

PARSERS_OF_TEXT: list[Parser[str]] = [
    Parser(
        covers=(
            "terrazzo_adapters.influxdb.naming:_UNSAFE",
            "terrazzo_adapters.influxdb.naming:_UNSAFE_IN_FIELD",
            "terrazzo_adapters.influxdb.naming:_SPECIAL",
        ),
        run=_name,
        worst=(lambda n: "%" * n, lambda n: ", =" * (n // 3), lambda n: "/" * n, lambda n: "\\" * n),
        samples=("T1/r", "a b,c=d", "x%2F", "_field|text"),
        most=2**16,
    ),
    Parser(
        covers=("terrazzo_adapters.influxdb.lines:parse_tie",),
        run=lambda text: parse_tie(f"{text}.5", 1_234),
        worst=(lambda n: "." * n,),
        samples=("writer", ""),
    ),
    Parser(
        covers=("terrazzo.csv_text:_FORMULA", "terrazzo.csv_text:_QUOTED"),
        run=lambda text: bare_text(guard_formula(text)) == text or 1 / 0,
        worst=(lambda n: "'" * n, lambda n: "'" * n + "=", lambda n: "=" * n),
        samples=("=1+1", "'@x", "plain"),
    ),
    Parser(
        covers=("terrazzo.messenger.masking:_SECRET_NAME",),
        run=_masked,
        raises=(ValueError,),
        worst=(lambda n: "a" * n, lambda n: "?" + "&" * n, lambda n: "@" * n),
        samples=("services/T0/B0?token=abcdefgh", "user:password@host"),
        most=2**13,  # a URL in a rule or in the configuration
    ),
]
