"""Parsers of what terminals, brokers and proxies send: payloads, packets, topics, seals, logins."""

from __future__ import annotations

import asyncio
import base64
import json
import time

import msgspec
from mqtt5 import ConnAckReasonCode
from parser_kinds import Parser

from client_certificates import ClientCa, self_signed
from terrazzo.campaigns.download_links import _STORED
from terrazzo.commands.missing_answers import uid_of
from terrazzo.domain.answers import CommandAnswer
from terrazzo.domain.certificates.authorities import Authorities
from terrazzo.domain.certificates.authority import ClientAuthority
from terrazzo.domain.command_payload import build_payload, split_credentials, without_download_secrets
from terrazzo.domain.payload import PointLimits, Reject, decode, flatten, has_many_values, take_points
from terrazzo.domain.payloads.form import PayloadForm
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.domain.topic_permission import parse_topic_permission
from terrazzo.embedded.bridges import _read_properties
from terrazzo.errors import BadParameter
from terrazzo.ingest.decoder_process import read_points
from terrazzo.ingest.sealing import Seal
from terrazzo.ingest.timing import record_time
from terrazzo.terminals.acl import TerminalAcl, covers, is_sys_filter
from terrazzo.terminals.login import read_auto_password
from terrazzo.terminals.packet_summary import summarize
from terrazzo.terminals.scram import METHODS, ScramExchange, ScramKeys
from terrazzo.terminals.shown_certificate import ShownCertificate
from terrazzo_broker.access.acl_file import _entry
from terrazzo_broker.access.password_hash import parse_hash
from terrazzo_broker.codec.errors import PacketError, UnsupportedProtocol
from terrazzo_broker.codec.publish import parse_publish
from terrazzo_broker.codec.reader import CONNECT, PUBLISH, find_level, parse_connect, parse_packet
from terrazzo_broker.codec.scan import scan_acks, scan_publishes
from terrazzo_broker.codec.wire import Cursor, encode_binary, encode_length, parse_frame
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.hooks import Challenge, ConnectRequest, Refuse
from terrazzo_broker.log_text import visible
from terrazzo_broker.peer_address import TrustedProxies, share_of
from terrazzo_broker.topics.names import is_topic_filter, is_topic_name, matches, split_shared
from terrazzo_broker.topics.retained import RetainedMessages
from terrazzo_broker.topics.tree import SubscriptionTree
from terrazzo_broker.tracing.packet_tap import HEAD_BYTES, TappedPacket

MOST_STRING = 65_535  # bytes of a string in a packet
TERMINAL = Terminal(
    id=1, uid="T1", name="T1", company_id=1, type="", mode="pwd", username="u", pin="secret pin", encryption=True
)
SEAL = Seal(TERMINAL)
SEALED = SEAL.seal(b'{"a": 1}')


AUTHORITY = ClientCa("Sample")
AUTHORITIES = Authorities()
AUTHORITIES.put(ClientAuthority(1, TERMINAL.company_id, AUTHORITY.certificate))
CERTIFICATE = AUTHORITY.issue("T1").der

REGISTRY = Registry()
REGISTRY.put_terminal(TERMINAL)
ACL = TerminalAcl(TERMINAL, REGISTRY)


def _log_in_by_certificate(der: bytes) -> object:
    return ShownCertificate(der, AUTHORITIES).authority_for(TERMINAL, time.time())


def _frame(first: int, body: bytes) -> bytes:
    return bytes((first,)) + encode_length(len(body)) + body


def _packet(data: bytes) -> object:
    """The first packet in what has arrived, in all three versions."""
    frame = parse_frame(data, 0) if data else None
    if frame is None:
        return None
    last: Exception | None = None
    for version in (3, 4, 5):
        cursor = Cursor(data, frame[0], min(frame[1], len(data)))
        try:
            if data[0] >> 4 == CONNECT:
                find_level(cursor)
                parse_connect(data[0], cursor)
            elif data[0] >> 4 == PUBLISH:
                parse_publish(data[0], cursor, version)
            else:
                parse_packet(data[0], cursor, version)
        except (PacketError, UnsupportedProtocol) as error:
            last = error
    if last is not None:
        raise last
    return None


def _payload(data: bytes) -> object:
    limits = PointLimits()
    asked = tuple(map(str, (limits.name_chars, limits.points, limits.text_chars, 1, 0)))
    apart = msgspec.msgpack.decode(read_points(data, asked))
    assert has_many_values(data) or len(apart[1]) < 10
    points = flatten(decode(data))
    assert take_points(data).keys() == points.keys()
    return record_time(points["Time"], latest_us=2**60) if "Time" in points else None


def _names(text: str) -> object:
    """A topic or filter of at most 65,535 bytes, and what is looked up by it."""
    split_shared(text)
    is_sys_filter(text)
    is_topic_name(text)
    ACL.may_publish(text)
    ACL.may_subscribe(text)
    return [matches(text, "a/b"), matches("a/+/#", text), covers(text, "a/b"), covers("a/#", text)]


def _filter(text: str) -> object:
    """A filter as a session may have it: of at most 128 levels."""
    if not is_topic_filter(text, levels=128):
        return None
    tree: SubscriptionTree[Session] = SubscriptionTree()
    retained: RetainedMessages[object] = RetainedMessages()  # type: ignore[type-var]
    list(tree.matching(text, ""))
    return list(retained.walk(text)), covers(text, text), matches(text, text)


def _scram(data: bytes) -> object:
    """client-first; and the same as client-final."""
    request = ConnectRequest(client_id="T1", auth_method=METHODS[1], auth_data=data)
    refused = Refuse(ConnAckReasonCode.NOT_AUTHORIZED)
    exchange = ScramExchange(
        request,
        TERMINAL,
        keys=_KEYS,
        is_known=True,
        accept=lambda _: refused,
        refuse=lambda _: refused,
        busy=lambda _: refused,
    )

    async def run() -> object:
        verdict = await exchange.start()
        for final in (b"c=biws," + data,):
            if isinstance(verdict, Challenge):
                await verdict.proceed(final)
        return verdict

    return asyncio.run(run())


def _run(data: bytes) -> object:
    """What stands at the beginning of one read, as several packets of one kind."""
    routes = {b"\0\1a": _Route(), b"\0\1b": _Route()}
    found: list[object] = []
    for version in (4, 5):
        if len(data) > 4 and data[0] >> 4 == PUBLISH:
            found.append(scan_publishes(data, 0, routes, version=version, limit=2**20))
        elif len(data) >= 4 and data[1] == 2:
            found.append(scan_acks(data, 0))
    return found


class _Route:
    """A topic with receivers."""

    fan = "receivers"
    run_messages = 17


def _summary(data: bytes) -> object:
    """A packet without its length, of each version."""
    if not data:
        return None
    return [summarize(TappedPacket(True, data[0], len(data) + 1, data[1 : HEAD_BYTES + 1], each)) for each in (4, 5)]


def _bridged(data: bytes) -> object:
    return _read_properties(data[: 2**20])


_KEYS = ScramKeys()


def _header(**more: object) -> bytes:
    return base64.urlsafe_b64encode(json.dumps({"alg": "dir", "enc": "A256GCM", **more}).encode()).rstrip(b"=")


PARSERS_OF_BYTES: list[Parser[bytes]] = [
    Parser(
        covers=(
            "terrazzo.terminals.packet_summary:summarize",
            "terrazzo.terminals.packet_summary:_read_fields",
            "terrazzo.terminals.packet_summary:_read_publish",
            "terrazzo.terminals.packet_summary:_read_filters",
            "terrazzo.terminals.packet_summary:_told",
            "terrazzo.terminals.packet_summary:_JSON_SECRET",
            "terrazzo.terminals.packet_summary:_URL_QUERY",
            "terrazzo.terminals.packet_summary:_URL_USER",
            "terrazzo.terminals.packet_summary:_UNSEEN",
        ),
        run=_summary,
        worst=(
            lambda n: b'\x30\0\1a"' + b"pin" * (n // 3),
            lambda n: b"\x30\0\1a" + b'"pin' * (n // 4),
            lambda n: b"\x30\0\1a" + b'"pin":"' * (n // 7),
            lambda n: b"\x30\0\1a" + b"http://a?" * (n // 9),
            lambda n: b"\x30\0\1a" + b"a://" + b"a" * n,
            lambda n: b"\x30\0\1a" + b"a" * n,
            lambda n: b"\x82\0\1\0" + b"\0\1a\0" * (n // 4),
            lambda n: b"\x90\0\1\0" + b"\0" * n,
            lambda n: b"\x30\xff\xff" + b"\xff" * n,
        ),
        samples=(
            b'\x30\0\3a/b\0{"pin": "1", "u": "https://me:pw@a/?x=1"}',
            b"\x32\0\3a/b\0\1\5\x02\0\0\0\1payload",
            b"\x82\0\1\0\0\3a/#\1",
            b"\xa2\0\1\0\0\3a/#",
            b"\x40\0\1\x10",
            b"\x90\0\1\0\1\x80",
            b"\xe0\x8e",
            b"\x20\0\5",
        ),
        most=HEAD_BYTES,
    ),
    Parser(
        covers=(
            "terrazzo.domain.payload:decode",
            "terrazzo.domain.payload:_decode_other",
            "terrazzo.domain.payload:_explained",
            "terrazzo.domain.payload:take_points",
            "terrazzo.domain.payload:has_many_values",
            "terrazzo.ingest.decoder_process:read_points",
            "terrazzo.ingest.timing:_parse_text",
            "terrazzo.ingest.timing:_parse_number",
        ),
        run=_payload,
        raises=(Reject,),
        worst=(
            lambda n: b"[" * n,
            lambda n: b'{"a":' * (n // 5),
            lambda n: b'{"a":' * 31 + b"{" + b",".join(b'"p%d":1' % i for i in range(n // 12)) + b"}" + b"}" * 31,
            lambda n: b'{"a":' + b"9" * n + b"}",
            lambda n: b'{"Time":"' + b" " * n + b'"}',
            lambda n: b'{"Time":' + b"1" * n + b"}",
            lambda n: b"\x81\xa1a" * (n // 3),
            lambda n: b"\x91" * n,
            lambda n: b'{"a":"' + b"\\" * n,
            lambda n: b" " * n,
        ),
        samples=(
            b'{"a": 1, "b": {"c": true}, "Time": "2024-02-29T12:00:00Z"}',
            msgspec.msgpack.encode({"a": 1.5, "b": {"c": None}, "Time": 1_700_000_000}),
            b'{"Time": 1700000000000, "s": "text"}',
        ),
    ),
    Parser(
        covers=(
            "terrazzo_broker.codec.reader:parse_packet",
            "terrazzo_broker.codec.reader:read_packet",
            "terrazzo_broker.codec.reader:parse_connect",
            "terrazzo_broker.codec.publish:parse_publish",
            "terrazzo_broker.codec.publish:read_publish",
            "terrazzo_broker.codec.properties:parse_properties",
            "terrazzo_broker.codec.properties:read_properties",
            "terrazzo_broker.codec.subscribe:read_subscribe",
            "terrazzo_broker.codec.subscribe:read_unsubscribe",
            "terrazzo_broker.codec.wire:parse_frame",
            "terrazzo_broker.codec.wire:decode_string",
        ),
        run=_packet,
        raises=(PacketError, UnsupportedProtocol),
        worst=(
            lambda n: _frame(0x82, b"\0\1\0" + b"\0\1a\0" * (n // 4)),
            lambda n: _frame(0xA2, b"\0\1\0" + b"\0\1a" * (n // 3)),
            lambda n: _frame(0x30, b"\0\1a" + encode_length(n // 7 * 7) + b"\x26\0\1k\0\1v" * (n // 7)),
            lambda n: _frame(
                0x10, b"\0\4MQTT\5\2\0\0" + encode_length(n // 7 * 7) + b"\x26\0\1k\0\1v" * (n // 7) + b"\0\0"
            ),
            lambda n: _frame(0x30, b"\0\1a" + encode_length(n // 2) + b"\x0b\1" * (n // 4)),
            lambda n: b"\xff" * n,
            lambda n: _frame(0x30, b"\xff" * n),
        ),
        samples=(
            _frame(0x10, b"\0\4MQTT\5\xc2\0\x0a\0\0\2id\0\1u\0\1p"),
            _frame(0x10, b"\0\6MQIsdp\3\2\0\x0a\0\2id"),
            _frame(0x10, b"\0\4MQTT\4\x06\0\x0a\0\2id\0\1w\0\1x"),
            _frame(0x30, b"\0\3a/b\0payload"),
            _frame(0x32, b"\0\3a/b\0\1\5\x02\0\0\0\1payload"),
            _frame(0x82, b"\0\1\0\0\3a/+\1"),
            _frame(0xA2, b"\0\1\0\0\1a"),
            _frame(0x40, b"\0\1\x10\0"),
            _frame(0xE0, b"\0\5\x11\0\0\0\7"),
            _frame(0xF0, b"\x18\x0a\x15" + encode_binary(b"ab") + b"\x16" + encode_binary(b"\xff\0")),
        ),
    ),
    Parser(
        covers=("terrazzo.domain.payloads.form:PayloadForm.read_array",),
        run=PayloadForm(format="array", names=("a", "b")).read_array,
        raises=(Reject,),
        worst=(
            lambda n: b"[" * n,
            lambda n: b"[" + b"1," * (n // 2) + b"1]",
            lambda n: b"[1," + b"9" * n + b"]",
            lambda n: b"[" + b'{"a":' * (n // 5),
            lambda n: b"\xdd\x00\xff\xff\xff" + b"\x01" * n,
            lambda n: b"\x91" * n,
            lambda n: b'["' + b"\\" * n,
            lambda n: b" " * n,
        ),
        samples=(b"[21.5, null]", b'[true, "x"]', b"\x92\x01\xa1x", b'{"a": 1}', b"[1,2,3]"),
    ),
    Parser(
        covers=("terrazzo.ingest.sealing:Seal.open",),
        run=SEAL.open,
        raises=(Reject,),
        worst=(
            lambda n: b"." * n,
            lambda n: b"a" * n + b"....",
            lambda n: _header(a="b" * n) + b"....",
            lambda n: base64.urlsafe_b64encode(b"[" * n) + b"....",
            lambda n: _header() + b".." + b"A" * n + b"." + b"A" * n + b".AA",
        ),
        samples=(
            SEALED,
            b".".join((_header(zip="DEF"), *SEALED.split(b".")[1:])),
            b".".join((_header(crit=["b64"], b64=False), *SEALED.split(b".")[1:])),
            b".".join((_header(alg="none"), *SEALED.split(b".")[1:])),
            b".".join((_header(alg=["dir"], enc={}), *SEALED.split(b".")[1:])),
        ),
    ),
    Parser(
        covers=("terrazzo.terminals.scram:ScramExchange.start",),
        run=_scram,
        worst=(
            lambda n: b"n,,n=a" + "\u0315\u0300".encode() * (n // 4) + b",r=x",
            lambda n: b"n,,n=" + b"=2C" * (n // 3) + b",r=x",
            lambda n: b"," * n,
            lambda n: b"n,,n=u,r=" + b"x" * n,
        ),
        samples=(b"n,,n=u,r=nonce", b"y,,n=u=2Cv,r=abc", b"c=biws,r=nonce,p=AAAA", b"p=tls-unique,,n=u,r=a"),
        most=MOST_STRING,
        floor_s=0.02,
    ),
    Parser(
        covers=(
            "terrazzo_broker.codec.scan:scan_publishes",
            "terrazzo_broker.codec.scan:scan_acks",
        ),
        run=_run,
        raises=(PacketError,),
        worst=(
            lambda n: b"\x30\x03\0\1a" * (n // 5),
            lambda n: b"\x30\x04\0\1a\0" * (n // 6),
            lambda n: b"\x40\x02\0\1" * (n // 4),
            lambda n: b"\x30\xff\xff" * (n // 3),
        ),
        samples=(b"\x30\x05\0\1axy\x30\x05\0\1bxy", b"\x32\x07\0\1a\0\1xy", b"\x40\x02\0\1\x40\x02\0\2"),
    ),
    Parser(
        covers=("terrazzo.embedded.bridges:_read_properties",),
        run=_bridged,
        raises=(PacketError,),
        worst=(lambda n: b"\x26\0\1k\0\1v" * (n // 7),),
        samples=(b"\x26\0\1k\0\1v", b"\x03\0\1t\x08\0\1r\x09\0\1c"),
    ),
    Parser(
        covers=("terrazzo.terminals.login:read_auto_password",),
        run=lambda data: read_auto_password(data, pin=TERMINAL.pin, uid=TERMINAL.uid),
        worst=(lambda n: b"." * n, lambda n: b"1" * n + b"." + b"0" * n),
        samples=(b"1700000000.abcdef", b"1700000000123.abcdef", b"."),
        most=MOST_STRING,
    ),
    Parser(
        covers=(
            "terrazzo.domain.certificates.client_certificate:ClientCertificate",
            "terrazzo.domain.certificates.client_certificate:ClientCertificate.__init__",
            "terrazzo.terminals.shown_certificate:ShownCertificate.__init__",
        ),
        run=_log_in_by_certificate,
        worst=(
            lambda n: b"\x30" * n,
            lambda n: b"\x30\x82" + min(n, 65_000).to_bytes(2, "big") + b"\x30\x80" * (n // 2),
            lambda n: CERTIFICATE + b"\0" * n,
        ),
        samples=(CERTIFICATE, AUTHORITY.issue(dns=["T1"], uris=["T2"]).der, self_signed("T1").der),
        most=102_400,  # OpenSSL's bound of all certificates that a client sends
    ),
    Parser(
        covers=("terrazzo.commands.missing_answers:_UID",),
        run=lambda data: uid_of(CommandAnswer("T1", data, b"")),
        worst=(lambda n: b"0" * n,),
        samples=(b"0" * 32, b"\xff" * 32),
        most=MOST_STRING,
    ),
]

PARSERS_OF_TEXT: list[Parser[str]] = [
    Parser(
        covers=("terrazzo_broker.topics.names:split_shared", "terrazzo.terminals.acl:TerminalAcl._read_topic"),
        run=_names,
        worst=(
            lambda n: "/" * n,
            lambda n: "+/" * (n // 2) + "#",
            lambda n: "$share/" * (n // 7),
            lambda n: "#" * n,
            lambda n: "a" * n,
        ),
        samples=("a/+/#", "$share/g/a/b", "$SYS/#", "g/T1/r"),
        most=MOST_STRING,
    ),
    Parser(
        covers=("terrazzo_broker.topics.names:is_topic_filter",),
        run=_filter,
        worst=(lambda n: "+/" * min(n // 2, 127) + "#", lambda n: "/" * min(n, 127), lambda n: "+" * n),
        samples=("a/+/#", "g/T1/r", "//"),
        most=MOST_STRING,
    ),
    Parser(
        covers=(
            "terrazzo.domain.topic_permission:parse_topic_permission",
            "terrazzo.domain.topic_permission:_parse_channels",
            "terrazzo.domain.topic_permission:_parse_filter",
        ),
        run=parse_topic_permission,
        raises=(ValueError,),
        worst=(
            lambda n: "pub:" + "r," * (n // 2),
            lambda n: "sub:" + "/" * n,
            lambda n: ";" * n,
            lambda n: "sub:" + "a," * (n // 2),
        ),
        samples=("all", "pub:r,a;sub:g/#,a/+", "sub:p2p/x"),
    ),
    Parser(
        covers=("terrazzo.domain.command_payload:split_credentials",),
        run=lambda text: split_credentials(text, "lua_file"),
        raises=(BadParameter,),
        worst=(lambda n: "ftp://" + "@" * n, lambda n: "ftp://" + ":" * n, lambda n: "ftp://[" + "a" * n),
        samples=("ftp://u:p@h:21/x", "http://h/x", "ftp://u%20:p@[::1]/"),
    ),
    Parser(
        covers=("terrazzo.domain.command_payload:_SIGNATURE",),
        run=lambda text: without_download_secrets({"Act": "AXUpgrade", "URL": text, "Pwd": text}),
        worst=(lambda n: "?signature=" * (n // 11), lambda n: "?" * n, lambda n: "&signature" * (n // 10)),
        samples=("http://h/x?expires=1&signature=abc#f",),
    ),
    Parser(
        covers=("terrazzo.domain.command_payload:build_payload",),
        run=lambda text: build_payload("point", text),
        raises=(BadParameter,),
        worst=(lambda n: "9" * n, lambda n: "[" * n, lambda n: " " * n),
        samples=("1.5", "on", "1e5"),
    ),
    Parser(
        covers=("terrazzo.campaigns.download_links:_STORED",),
        run=_STORED.fullmatch,
        worst=(
            lambda n: "/" * n,
            lambda n: "/" + "0" * n,
            lambda n: ("/" + "0" * 32) * (n // 33) + "x",
            lambda n: "0" * n,
        ),
        samples=("0" * 32, "/files/1/" + "a" * 32),
    ),
    Parser(
        covers=("terrazzo_broker.peer_address:_parse",),
        run=lambda text: (share_of(text), TrustedProxies(["10.0.0.0/8"]).client_of("10.0.0.1", [text])),
        worst=(lambda n: "," * n, lambda n: "[" * n, lambda n: ":" * n, lambda n: "10.0.0.1," * (n // 9)),
        samples=("192.0.2.1, 10.0.0.2", "[2001:db8::1]:80", "fe80::1%eth0", "::ffff:192.0.2.1"),
    ),
    Parser(
        covers=("terrazzo_broker.log_text:HIDDEN",),
        run=visible,
        worst=(lambda n: "\x1b" * n, lambda n: "a" * n, lambda n: "\u202e" * n),
        samples=("text\x1b[2J", "\u202eabc\ud800"),
    ),
    Parser(
        covers=(
            "terrazzo_broker.access.password_hash:parse_hash",
            "terrazzo_broker.access.password_hash:_decode",
        ),
        run=parse_hash,
        raises=(ValueError,),
        worst=(
            lambda n: "$" * n,
            lambda n: "$7$" + "1" * n + "$a$b",
            lambda n: "$7$101$" + "A" * n + "$" + "A" * n,
            lambda n: "$6$" + "=" * n + "$",
        ),
        samples=(
            "$7$101$AAAAAAAAAAAAAAAA$" + base64.b64encode(bytes(64)).decode(),
            "$6$AAAA$" + base64.b64encode(bytes(64)).decode(),
        ),
    ),
    Parser(
        covers=("terrazzo_broker.access.acl_file:read_acl",),
        run=_entry,
        raises=(ValueError,),
        worst=(lambda n: "/" * n, lambda n: " " * n, lambda n: "read " + "+/" * (n // 2), lambda n: "%u" * (n // 2)),
        samples=("read a/+/#", "deny $SYS/#", "a/%u/%c"),
    ),
]
