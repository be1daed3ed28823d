"""Random sequences of what three clients do, of a seed: mostly valid, some whole packets malformed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CLIENTS = ("a", "b", "c")
TOPICS = ("t", "t/u", "t/u/v", "t/w", "x", "x/", "$x/y")
FILTERS = ("t", "t/u", "t/+", "+/u", "t/#", "#", "+", "+/+", "x/", "t/u/v/#", "x/+", "$x/#", "$x/+")
BAD_FILTERS = ("t/#/u", "t/a+", "t#", "")
SHARED = "$share/g/"
EXPIRED_S = 2.6
"""Of a message or session that lives for a second: Mosquitto looks once a second, and so do others."""


@dataclass(frozen=True)
class Step:
    """One client does one thing; ``options`` are those of its packet, as ``conformance_wire`` names them."""

    who: str
    kind: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.who} {self.kind} " + " ".join(f"{name}={value!r}" for name, value in self.options.items())


class Sequencer:
    """Makes the steps of a seed, one after the other, knowing who should be connected, in which version."""

    def __init__(self, seed: str, *, waits: bool) -> None:
        self._chance = random.Random(f"differential {seed}")
        mixed = self._chance.choice(((4, 4, 4), (4, 4, 4), (5, 5, 5), (5, 5, 5), (4, 5, 4), (5, 4, 5)))
        self._version = dict(zip(CLIENTS, mixed, strict=True))
        self._second = [1] if waits else []  # a lifetime that is over after a wait, and not before one
        self._short: set[str] = set()  # whose session or will has it
        self._due = False  # a wait, so that nothing depends on how fast the steps are
        self._connected: set[str] = set()
        self._aliases: dict[str, set[int]] = {}
        self._unreleased: dict[str, list[int]] = {who: [] for who in CLIENTS}
        self._last: dict[str, Step] = {}
        self._number = 0

    def steps(self, count: int) -> list[Step]:
        """That many; the first ones connect."""
        first = [self._connect("a"), self._connect("b"), self._subscribe(self._chance.choice("ab"))]
        return [*first, *(self._step() for _ in range(count))]

    def _step(self) -> Step:
        who = self._chance.choice(CLIENTS)
        if self._due:
            self._due = False
            return Step(who, "wait", {"seconds": EXPIRED_S})
        if who not in self._connected:
            return self._first_malformed(who) if self._may(0.05) else self._connect(who)
        (kind,) = self._chance.choices(list(_KINDS), list(_KINDS.values()))
        made: Step = getattr(self, f"_{kind}")(who)
        return made

    def _may(self, share: float) -> bool:
        return self._chance.random() < share

    def _connect(self, who: str) -> Step:
        self._connected.add(who)
        self._aliases[who] = set()
        version = self._version[who]
        options: dict[str, Any] = {"version": version, "clean": self._may(0.4), "acknowledges": self._may(0.85)}
        if self._may(0.3):
            options["keep_alive"] = self._chance.choice((60, 65535))
        if self._may(0.3):
            options["will"] = self._will(version)
        if self._may(0.1):
            options["username"] = "u"
            if self._may(0.5) or version == 4:
                options["password"] = b"p"
        if version == 5:
            options |= self._connect_properties()
        self._short.discard(who)
        if 1 in (options.get("session_expiry"), options.get("will", {}).get("properties", {}).get("will_delay")):
            self._short.add(who)
        return Step(who, "connect", options)

    def _connect_properties(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._may(0.6):
            found["session_expiry"] = self._chance.choice((0, *self._second, 100, 0xFFFFFFFF))
        if self._may(0.2):
            found["receive_maximum"] = self._chance.choice((1, 2, 10))
        if self._may(0.2):
            found["topic_alias_maximum"] = self._chance.choice((0, 1, 5))
        if self._may(0.1):
            found["maximum_packet_size"] = self._chance.choice((40, 100, 1000))
        if self._may(0.1):
            found["request_problem_info"] = self._chance.choice((0, 1))
        if self._may(0.1):
            found["user"] = [("k", "v"), ("k", "w")]
        return found

    def _will(self, version: int) -> dict[str, Any]:
        will = {"topic": self._chance.choice(TOPICS[:4]), "payload": self._payload(), "qos": self._chance.randrange(3)}
        will["retain"] = self._may(0.3)
        if version == 5:
            will["properties"] = self._message_properties()
            if self._may(0.3):
                will["properties"]["will_delay"] = self._chance.choice((0, *self._second, 100))
        return will

    def _message_properties(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._may(0.2):
            found["payload_format"] = self._chance.choice((0, 1))
        if self._may(0.2):
            found["message_expiry"] = self._chance.choice((100, 0xFFFFFFFF))
        if self._may(0.15):
            found["content_type"] = self._chance.choice(("text/plain", ""))
        if self._may(0.15):
            found["response_topic"] = "t/answer"
        if self._may(0.15):
            found["correlation_data"] = self._chance.choice((b"\0\xff", b""))
        if self._may(0.15):
            found["user"] = [("k", "v"), ("k", "w"), ("", "")]
        return found

    def _payload(self) -> bytes:
        self._number += 1
        return b"" if self._may(0.08) else b"m%d" % self._number

    def _publish(self, who: str) -> Step:
        qos = self._chance.randrange(3)
        options: dict[str, Any] = {"topic": self._chance.choice(TOPICS), "payload": self._payload(), "qos": qos}
        options["retain"] = self._may(0.3)
        if qos:
            options["packet_id"] = 100 + self._number  # which no other message has
        if qos == 2 and self._may(0.05):
            options["releases"] = False
            self._unreleased[who].append(options["packet_id"])
        if self._version[who] == 5:
            options |= self._message_properties()
            if self._second and self._may(0.03):
                options["message_expiry"] = 1
                self._due = True
            if self._may(0.15):
                alias = options["topic_alias"] = self._chance.choice((1, 2))
                if alias in self._aliases[who] and self._may(0.6):
                    options["topic"] = ""
                self._aliases[who].add(alias)
        step = Step(who, "publish", options)
        self._last[who] = step
        return step

    def _resend(self, who: str) -> Step:
        last = self._last.get(who)
        if last is None or not last.options["qos"] or not last.options["topic"]:
            return self._publish(who)
        return Step(who, "publish", {**last.options, "dup": True})

    def _release(self, who: str) -> Step:
        waiting = self._unreleased[who]
        return Step(who, "release", {"packet_id": waiting.pop()}) if waiting else self._publish(who)

    def _subscribe(self, who: str) -> Step:
        wishes = [self._wish(who) for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        options: dict[str, Any] = {"packet_id": self._chance.randint(10, 19), "filters": wishes}
        if self._version[who] == 5 and self._may(0.3):
            options["subscription_id"] = self._chance.choice((1, 2, 300))
        return Step(who, "subscribe", options)

    def _wish(self, who: str) -> tuple[str, int]:
        name, wish = self._filter(), self._chance.randrange(3)
        shared = self._may(0.08)
        if self._version[who] == 5:
            wish |= self._may(0.2) << 2 | self._may(0.3) << 3 | self._chance.choice((0, 0, 0, 1, 2)) << 4
        if shared:  # [MQTT-3.8.3-4]: no local is a protocol error there
            wish &= ~4
        return (SHARED if shared else "") + name, wish

    def _filter(self) -> str:
        return self._chance.choice(BAD_FILTERS if self._may(0.02) else FILTERS)

    def _unsubscribe(self, who: str) -> Step:
        names = [self._filter() for _ in range(self._chance.choice((1, 1, 2)))]
        return Step(who, "unsubscribe", {"packet_id": self._chance.randint(20, 29), "filters": names})

    def _reconnect(self, who: str) -> Step:
        if self._may(0.1):
            self._version[who] = self._chance.choice((4, 5))
        return self._connect(who)

    def _over(self, who: str) -> None:
        """Its connection is, and it will connect again."""
        self._connected.discard(who)
        self._due = who in self._short

    def _leave(self, who: str) -> Step:
        self._over(who)
        options: dict[str, Any] = {}
        if self._version[who] == 5 and self._may(0.5):
            options["reason"] = self._chance.choice((0x00, 0x04))
            if self._may(0.4):
                options["session_expiry"] = self._chance.choice((0, 100))
        return Step(who, "leave", options)

    def _cut(self, who: str) -> Step:
        self._over(who)
        return Step(who, "cut")

    def _acknowledge(self, who: str) -> Step:
        return Step(who, "acknowledge")

    def _malformed(self, who: str) -> Step:
        self._over(who)
        names = [name for name, (versions, _) in MALFORMED.items() if self._version[who] in versions]
        return Step(who, "malformed", {"name": self._chance.choice(names)})

    def _first_malformed(self, who: str) -> Step:
        version = self._version[who]
        names = [name for name, (versions, _) in MALFORMED_FIRST.items() if version in versions]
        return Step(who, "malformed_first", {"version": version, "name": self._chance.choice(names)})


_KINDS = {
    "publish": 40,
    "subscribe": 18,
    "unsubscribe": 5,
    "release": 4,
    "resend": 2,
    "reconnect": 5,
    "leave": 5,
    "cut": 5,
    "acknowledge": 3,
    "malformed": 4,
}

_BOTH, _OLD, _NEW = (4, 5), (4,), (5,)


def _packet(first: int, body: str) -> bytes:
    data = bytes.fromhex(body)
    return bytes((first, len(data))) + data


MALFORMED: dict[str, tuple[Sequence[int], bytes]] = {
    "PINGREQ with flags": (_BOTH, _packet(0xC1, "")),
    "PINGREQ with a body": (_BOTH, _packet(0xC0, "00")),
    "packet type 0": (_BOTH, _packet(0x00, "")),
    "AUTH in 3.1.1": (_OLD, _packet(0xF0, "")),
    "AUTH without a method": (_NEW, _packet(0xF0, "1800")),
    "CONNACK from a client": (_BOTH, _packet(0x20, "0000")),
    "SUBACK from a client": (_OLD, _packet(0x90, "000100")),
    "PINGRESP from a client": (_BOTH, _packet(0xD0, "")),
    "CONNECT again in 3.1.1": (_OLD, _packet(0x10, "00044d5154540402000000017a")),
    "CONNECT again in 5.0": (_NEW, _packet(0x10, "00044d515454050200000000017a")),
    "PUBLISH at QoS 3 in 3.1.1": (_OLD, _packet(0x36, "0001740001")),
    "PUBLISH at QoS 3 in 5.0": (_NEW, _packet(0x36, "000174000100")),
    "PUBLISH with identifier 0 in 3.1.1": (_OLD, _packet(0x32, "0001740000")),
    "PUBLISH with identifier 0 in 5.0": (_NEW, _packet(0x32, "000174000000")),
    "PUBLISH with DUP at QoS 0 in 3.1.1": (_OLD, _packet(0x38, "000174")),
    "PUBLISH with DUP at QoS 0 in 5.0": (_NEW, _packet(0x38, "00017400")),
    "PUBLISH to a wildcard in 3.1.1": (_OLD, _packet(0x30, "0003742f2b")),
    "PUBLISH to a wildcard in 5.0": (_NEW, _packet(0x30, "0003742f2300")),
    "PUBLISH without a topic in 3.1.1": (_OLD, _packet(0x30, "0000")),
    "PUBLISH without a topic in 5.0": (_NEW, _packet(0x30, "000000")),
    "PUBLISH to U+0000 in 3.1.1": (_OLD, _packet(0x30, "0003740075")),
    "PUBLISH to ill-formed UTF-8 in 3.1.1": (_OLD, _packet(0x30, "000274ff")),
    "PUBLISH to a surrogate in 5.0": (_NEW, _packet(0x30, "0003eda08000")),
    "PUBLISH whose topic ends beyond it": (_OLD, _packet(0x30, "000574")),
    "PUBLISH with topic alias 0": (_NEW, _packet(0x30, "00017403230000")),
    "PUBLISH with a topic alias beyond the maximum": (_NEW, _packet(0x30, "0001740323ffff")),
    "PUBLISH with an unknown alias alone": (_NEW, _packet(0x30, "000003230009")),
    "PUBLISH with a subscription identifier": (_NEW, _packet(0x30, "000174020b01")),
    "PUBLISH with the same property twice": (_NEW, _packet(0x30, "0001740401000100")),
    "PUBLISH with a property of CONNECT": (_NEW, _packet(0x30, "000174051100000001")),
    "PUBLISH with an unknown property": (_NEW, _packet(0x30, "000174027f00")),
    "PUBLISH with payload format 2": (_NEW, _packet(0x30, "000174020102")),
    "PUBLISH with a wildcard in its response topic": (_NEW, _packet(0x30, "000174040800012b")),
    "PUBLISH with properties longer than itself": (_NEW, _packet(0x30, "00017420")),
    "PUBACK nobody waits for": (_BOTH, _packet(0x40, "1234")),
    "PUBACK with flags": (_BOTH, _packet(0x42, "1234")),
    "PUBACK with identifier 0": (_BOTH, _packet(0x40, "0000")),
    "PUBREC nobody waits for": (_BOTH, _packet(0x50, "1234")),
    "PUBREL nobody waits for": (_BOTH, _packet(0x62, "1234")),
    "PUBREL without its flag": (_BOTH, _packet(0x60, "1234")),
    "PUBCOMP nobody waits for": (_BOTH, _packet(0x70, "1234")),
    "PUBACK with reason 1": (_NEW, _packet(0x40, "123401")),
    "SUBSCRIBE without its flag in 3.1.1": (_OLD, _packet(0x80, "000100017400")),
    "SUBSCRIBE without filters in 3.1.1": (_OLD, _packet(0x82, "0001")),
    "SUBSCRIBE without filters in 5.0": (_NEW, _packet(0x82, "000100")),
    "SUBSCRIBE with identifier 0 in 3.1.1": (_OLD, _packet(0x82, "000000017400")),
    "SUBSCRIBE at QoS 3 in 3.1.1": (_OLD, _packet(0x82, "000100017403")),
    "SUBSCRIBE at QoS 3 in 5.0": (_NEW, _packet(0x82, "00010000017403")),
    "SUBSCRIBE with a reserved option in 3.1.1": (_OLD, _packet(0x82, "000100017404")),
    "SUBSCRIBE with a reserved option in 5.0": (_NEW, _packet(0x82, "00010000017440")),
    "SUBSCRIBE with retain handling 3": (_NEW, _packet(0x82, "00010000017430")),
    "SUBSCRIBE with subscription identifier 0": (_NEW, _packet(0x82, "0001020b0000017400")),
    "SUBSCRIBE with two subscription identifiers": (_NEW, _packet(0x82, "0001040b010b0200017400")),
    "SUBSCRIBE shared with no local": (_NEW, _packet(0x82, "000100000a2473686172652f672f7404")),
    "SUBSCRIBE shared without a name": (_NEW, _packet(0x82, "00010000092473686172652f2f7400")),
    "UNSUBSCRIBE without its flag": (_OLD, _packet(0xA0, "0001000174")),
    "UNSUBSCRIBE without filters in 3.1.1": (_OLD, _packet(0xA2, "0001")),
    "UNSUBSCRIBE without filters in 5.0": (_NEW, _packet(0xA2, "000100")),
    "DISCONNECT with flags": (_BOTH, _packet(0xE1, "")),
    "DISCONNECT with a body in 3.1.1": (_OLD, _packet(0xE0, "00")),
    "DISCONNECT with reason 1": (_NEW, _packet(0xE0, "01")),
    "a length of five bytes": (_BOTH, bytes.fromhex("30ffffffff7f")),
}
"""Whole packets with one thing wrong, by what it is, each with the versions of MQTT that it is of."""

MALFORMED_FIRST: dict[str, tuple[Sequence[int], bytes]] = {
    "PINGREQ first": (_BOTH, _packet(0xC0, "")),
    "CONNECT with flags": (_OLD, _packet(0x11, "00044d5154540402000000017a")),
    "CONNECT with its reserved flag in 3.1.1": (_OLD, _packet(0x10, "00044d5154540403000000017a")),
    "CONNECT with its reserved flag in 5.0": (_NEW, _packet(0x10, "00044d515454050300000000017a")),
    "CONNECT with will QoS and no will": (_OLD, _packet(0x10, "00044d515454040a000000017a")),
    "CONNECT with will QoS 3": (_OLD, _packet(0x10, "00044d515454041e000000017a00017400")),
    "CONNECT with a password and no user": (_OLD, _packet(0x10, "00044d5154540442000000017a000170")),
    "CONNECT of level 6": (_BOTH, _packet(0x10, "00044d5154540602000000017a")),
    "CONNECT of another protocol": (_OLD, _packet(0x10, "00044d5154580402000000017a")),
    "CONNECT with no client id and a session": (_OLD, _packet(0x10, "00044d515454040000000000")),
    "CONNECT that ends early": (_OLD, _packet(0x10, "00044d51545404020000")),
    "CONNECT with something behind it": (_OLD, _packet(0x10, "00044d5154540402000000017a00")),
    "CONNECT with receive maximum 0": (_NEW, _packet(0x10, "00044d515454050200000321000000017a")),
    "CONNECT with maximum packet size 0": (_NEW, _packet(0x10, "00044d5154540502000005270000000000017a")),
    "CONNECT with a property twice": (_NEW, _packet(0x10, "00044d51545405020000062100012100020000")),
    "CONNECT with authentication data alone": (_NEW, _packet(0x10, "00044d51545405020000041600017000017a")),
    "CONNECT with an unknown method": (_NEW, _packet(0x10, "00044d51545405020000041500017000017a")),
    "CONNECT with request problem info 2": (_NEW, _packet(0x10, "00044d515454050200000217020001" + "7a")),
    "CONNECT whose will topic is a wildcard": (_OLD, _packet(0x10, "00044d5154540406000000017a000123000170")),
    "CONNECT whose will topic is empty": (_OLD, _packet(0x10, "00044d5154540406000000017a0000000170")),
}
"""The same of what a connection begins with."""


def sequence(seed: str, *, length: int = 14, waits: bool = False) -> list[Step]:
    """The steps of a seed; ``waits``: there are some that take until something has expired."""
    return Sequencer(seed, waits=waits).steps(length)
