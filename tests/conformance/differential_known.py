"""The differences that are known, each a row of docs/conformance.md: how it is recognised.

``ALLOWED`` are those after which brokers are in the same state: what differs is taken out of both answers, and the
comparison goes on. After one of ``EXPLAINED`` it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from differential_line import Event
from differential_steps import BAD_FILTERS, SHARED, Step

Pair = tuple[list[Event], list[Event]]
MOSQUITTO, AMQTT = "mosquitto", "amqtt"
TOOK_UP: Event = ("CONNACK", 0, True)


@dataclass(frozen=True)
class Moment:
    """The steps up to the one after which ``who`` heard something else from ``peer`` than from ours."""

    peer: str
    steps: Sequence[Step]
    who: str
    ours: list[Event]
    theirs: list[Event]

    @property
    def step(self) -> Step:
        """The last one."""
        return self.steps[-1]

    @property
    def fault(self) -> str:
        """What is malformed in the last step, if it is about that."""
        return str(self.step.options["name"]) if self.step.kind.startswith("malformed") else ""

    @property
    def version(self) -> int:
        """Of the client's connection."""
        who = self.who.removesuffix(" before")
        versions = [step.options["version"] for step in self.steps if step.who == who and "version" in step.options]
        return int(versions[-1]) if versions else 0

    def heard_as(self, ours: list[Event], theirs: list[Event]) -> Moment:
        """The same with other answers."""
        return replace(self, ours=ours, theirs=theirs)

    def pair(self) -> Pair:
        """Both answers."""
        return self.ours, self.theirs


def kinds(events: Sequence[Event]) -> list[Any]:
    """The first word of each."""
    return [event[0] for event in events]


def _without(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event[0] != kind]


def _goodbye(moment: Moment) -> Pair:
    """A server may close without saying why. [MQTT-4.13.2-1]"""
    ours, theirs = moment.pair()
    both = "closed" in kinds(ours) and "closed" in kinds(theirs)
    if both and ("DISCONNECT" in kinds(ours)) != ("DISCONNECT" in kinds(theirs)):
        return _without(ours, "DISCONNECT"), _without(theirs, "DISCONNECT")
    return ours, theirs


def _nobody(moment: Moment) -> Pair:
    """0x10 instead of 0 is a server's choice."""

    def plain(events: list[Event]) -> list[Event]:
        return [(*e[:2], 0) if e[0] in ("PUBACK", "PUBREC") and e[2] == 0x10 else e for e in events]

    return plain(moment.ours), plain(moment.theirs)


def _taken_over(moment: Moment) -> Pair:
    """What a connection is still sent when another takes its place, as its own will, is told to nobody any more."""
    if not moment.who.endswith(" before"):
        return moment.pair()
    return _without(moment.ours, "PUBLISH"), _without(moment.theirs, "PUBLISH")


def _one_copy(moment: Moment) -> Pair:
    """Of a message that several subscriptions match, one copy is due, and more are allowed. [MQTT-3.3.4-2]"""
    return _collapsed(moment.ours), _collapsed(moment.theirs)


def _collapsed(events: list[Event]) -> list[Event]:
    copies: dict[tuple[Any, ...], Event] = {}
    for event in events:
        if event[0] == "PUBLISH":
            key = (*event[1:3], *event[6:])
            copies[key] = _merged(copies.get(key, event), event)
    return [*dict.fromkeys(_without(events, "PUBLISH")), *copies.values()]


def _merged(one: Event, other: Event) -> Event:
    """The higher QoS, all subscription identifiers."""
    identifiers = tuple(sorted({*one[5], *other[5]}))
    return (*one[:3], max(one[3], other[3]), max(one[4], other[4]), identifiers, *one[6:])


def _another_reason(moment: Moment) -> Pair:
    """Two servers may call the same breach by different names; both end the connection."""
    ours, theirs = moment.pair()
    if "closed" not in kinds(ours) or "closed" not in kinds(theirs):
        return ours, theirs
    return [_nameless(event) for event in ours], [_nameless(event) for event in theirs]


def _nameless(event: Event) -> Event:
    return ("DISCONNECT", "a refusal") if event[0] == "DISCONNECT" and event[1] >= 0x80 else event


def _refused_in_silence(moment: Moment) -> Pair:
    """A server may close without a CONNACK that says why. [MQTT-3.1.4-1]"""
    ours, theirs = moment.pair()
    if "closed" not in kinds(ours) or "closed" not in kinds(theirs):
        return ours, theirs
    return _without_refusal(ours), _without_refusal(theirs)


def _without_refusal(events: list[Event]) -> list[Event]:
    return [event for event in events if event[0] != "CONNACK" or event[1] == 0]


def _unknown_identifier(moment: Moment) -> Pair:
    """0x92 for a PUBREL or PUBREC of an identifier that isn't in use is a server's choice."""

    def plain(events: list[Event]) -> list[Event]:
        return [(*event[:2], 0) if event[0] == "PUBCOMP" and event[2] == 0x92 else event for event in events]

    return plain(moment.ours), plain(moment.theirs)


def _said_zero(moment: Moment) -> Pair:
    """Payload format 0 is the same as none; a will of ours doesn't say it."""

    def plain(events: list[Event]) -> list[Event]:
        return [tuple(part for part in event if part != "payload_format=0") for event in events]

    return plain(moment.ours), plain(moment.theirs)


ALLOWED: dict[str, Callable[[Moment], Pair]] = {
    "a close without DISCONNECT": _goodbye,
    "another reason for the close": _another_reason,
    "a refusal without CONNACK": _refused_in_silence,
    "no matching subscribers": _nobody,
    "an identifier not in use": _unknown_identifier,
    "a connection that is taken over": _taken_over,
    "payload format 0 of a will": _said_zero,
    "several copies for overlapping subscriptions": _one_copy,
}

_TAKEN_BY_MOSQUITTO = (
    "PINGREQ with a body",
    "PINGREQ with flags",
    "PINGRESP from a client",
    "SUBACK from a client",
    "PUBACK with flags",
    "PUBACK with reason 1",
    "PUBLISH with DUP at QoS 0 in 3.1.1",
    "PUBLISH with DUP at QoS 0 in 5.0",
    "PUBLISH with a subscription identifier",
    "PUBLISH with a wildcard in its response topic",
    "PUBLISH with payload format 2",
    "SUBSCRIBE shared with no local",
    "CONNECT with authentication data alone",
    "SUBSCRIBE shared without a name",
)


def _unreleased(moment: Moment) -> bool:
    """Whether some QoS 2 message waits for its PUBREL."""
    return any(step.options.get("releases") is False for step in moment.steps)


def _invalid_filter(moment: Moment) -> bool:
    names = [each if isinstance(each, str) else each[0] for each in moment.step.options.get("filters", ())]
    return any(name.removeprefix(SHARED) in BAD_FILTERS for name in names)


def _more_retained(moment: Moment) -> list[Event]:
    """The retained messages that only the peer sent, where that is the whole difference, and a SUBSCRIBE the cause."""
    more = [event for event in moment.theirs if event not in moment.ours]
    less = [event for event in moment.ours if event not in moment.theirs]
    only = moment.step.kind == "subscribe" and not less and all(e[0] == "PUBREL" or "retain" in e[4:5] for e in more)
    return [event for event in more if event[0] == "PUBLISH"] if only else []


def _wish(moment: Moment, test: Callable[[str, int], bool]) -> bool:
    return any(test(*wish) for wish in moment.step.options.get("filters", ()))


def _matches(topic_filter: str, topic: str) -> bool:
    levels, parts = topic_filter.removeprefix(SHARED).split("/"), topic.split("/")
    for number, level in enumerate(levels):
        if level == "#":
            return True
        if number >= len(parts) or level not in ("+", parts[number]):
            return False
    return len(levels) == len(parts)


def _overlapping(moment: Moment, topic: str) -> bool:
    """Whether the client has asked for several filters, or one several times, that match."""
    asked = [s.options["filters"] for s in moment.steps if s.who == moment.who and s.kind == "subscribe"]
    return sum(_matches(name, topic) for wishes in asked for name, _ in wishes) > 1


def _lower_qos(moment: Moment) -> bool:
    ours, theirs = ([e for e in events if e[0] == "PUBLISH"] for events in moment.pair())
    pairs = list(zip(ours, theirs, strict=False))
    return (
        len(ours) == len(theirs)
        and _without_messages(moment.ours) == _without_messages(moment.theirs)
        and all(one[1:3] == other[1:3] and one[3] >= other[3] for one, other in pairs)
        and any(one[3] > other[3] and _overlapping(moment, one[1]) for one, other in pairs)
    )


def _without_messages(events: list[Event]) -> list[Event]:
    return [event for event in events if event[0] not in ("PUBLISH", "PUBREL")]


def _differing(moment: Moment) -> list[Event]:
    """The messages that only one of both sent."""
    ours, theirs = moment.pair()
    return [e for e in (*ours, *theirs) if e[0] == "PUBLISH" and (e in ours) != (e in theirs)]


def _wills(steps: Sequence[Step]) -> set[str]:
    """Topics of wills whose client was replaced, or whose delay began, so far."""
    kept: dict[str, dict[str, Any]] = {}
    found = set()
    for step in steps:
        will = kept.get(step.who)
        delayed = will is not None and will.get("properties", {}).get("will_delay", 0) > 0
        if will is not None and (step.kind == "connect" or (delayed and step.kind in ("cut", "leave", "malformed"))):
            found.add(will["topic"])
        if step.kind in ("connect", "malformed_first") or (step.kind in ("cut", "leave") and not delayed):
            kept.pop(step.who, None)
        if step.kind == "connect" and "will" in step.options:
            kept[step.who] = step.options["will"]
    return found


def _will_at_takeover(moment: Moment) -> bool:
    topics, differing = _wills(moment.steps), _differing(moment)
    return bool(differing) and all(event[1] in topics for event in differing)


def _options_changed(moment: Moment, topic: str) -> bool:
    """Whether the client has asked for a filter that matches several times, with other options."""
    asked: dict[str, set[int]] = {}
    for step in moment.steps:
        if step.who == moment.who and step.kind == "subscribe":
            for name, wish in step.options["filters"]:
                if _matches(name, topic):
                    asked.setdefault(name, set()).add(wish & 12)
    return any(len(each) > 1 for each in asked.values())


def _old_options(moment: Moment) -> bool:
    differing = _differing(moment)
    return bool(differing) and all(_options_changed(moment, event[1]) for event in differing)


def _window(moment: Moment) -> bool:
    """Whether the client has said how many messages it takes at a time."""
    said = [s.options for s in moment.steps if s.who == moment.who and s.kind == "connect"]
    return bool(said) and "receive_maximum" in said[-1]


def _fewer(moment: Moment) -> bool:
    """Whether the peer sent less than we, and nothing else."""
    return len(moment.theirs) < len(moment.ours) and all(event in moment.ours for event in moment.theirs)


def _only_more_retained(moment: Moment) -> bool:
    more = [event for event in moment.theirs if event not in moment.ours]
    return bool(more) and all(event[0] == "PUBLISH" and "retain" in event[4] for event in more)


def _shares(moment: Moment) -> bool:
    asked = [s.options["filters"] for s in moment.steps if s.kind == "subscribe"]
    return any(name.startswith(SHARED) for wishes in asked for name, _ in wishes)


def _same_but_qos(moment: Moment) -> bool:
    ours, theirs = (
        {(*e[:3], *e[4:]) if e[0] == "PUBLISH" else e for e in events if e[0] != "PUBREL"} for events in moment.pair()
    )
    return ours == theirs


def _replaced(steps: Sequence[Step]) -> bool:
    """Whether some client connected while it was connected."""
    connected = set()
    for step in steps:
        if step.kind in ("connect", "malformed_first"):
            if step.who in connected:
                return True
            connected.add(step.who)
        elif step.kind in ("leave", "cut"):
            connected.discard(step.who)
    return False


def _kept_clean(moment: Moment) -> bool:
    """Whether the session was said to be clean by the CONNECT before this one."""
    said = [s.options["clean"] for s in moment.steps if s.who == moment.who and s.kind == "connect"]
    return moment.step.kind == "connect" and said[-2:-1] == [True] and not said[-1]


EXPLAINED: dict[str, Callable[[Moment], bool]] = {
    "an invalid filter": _invalid_filter,
    "QoS 2 is passed on at PUBLISH or at PUBREL": _unreleased,
    "malformed packets that Mosquitto takes": lambda m: m.peer == MOSQUITTO and m.fault in _TAKEN_BY_MOSQUITTO,
    "no local for retained messages": lambda m: bool(_more_retained(m)) and _wish(m, lambda _, wish: bool(wish & 4)),
    "retained messages to a shared subscription": lambda m: (
        m.peer == MOSQUITTO and bool(_more_retained(m)) and _wish(m, lambda name, _: name.startswith(SHARED))
    ),
    "the QoS of overlapping subscriptions": lambda m: m.peer == MOSQUITTO and m.version == 4 and _lower_qos(m),
    "wills at a takeover, and whose session ends before their delay": lambda m: (
        m.peer == MOSQUITTO and _will_at_takeover(m)
    ),
    "options of a subscription that is made again": lambda m: m.peer == MOSQUITTO and _old_options(m),
    "a receive maximum that QoS 0 uses up": lambda m: m.peer == MOSQUITTO and _window(m) and _fewer(m),
    "which retained message a receive maximum lets through": lambda m: m.step.kind == "subscribe" and _window(m),
    "a second CONNECT": lambda m: (
        m.peer == MOSQUITTO and any(str(s.options.get("name")).startswith("CONNECT again") for s in m.steps)
    ),
    "retained messages at CONNECT": lambda m: m.peer == AMQTT and m.step.kind == "connect" and _only_more_retained(m),
    "amqtt has no shared subscriptions": lambda m: m.peer == AMQTT and _shares(m),
    "amqtt sends at the QoS of the subscription": lambda m: m.peer == AMQTT and _same_but_qos(m),
    "amqtt and a connection that takes another's place": lambda m: m.peer == AMQTT and _replaced(m.steps),
    "amqtt keeps sessions that were to be clean": lambda m: m.peer == AMQTT and _kept_clean(m),
    "amqtt forgets sessions of clients without a user name": lambda m: (
        m.peer == AMQTT and TOOK_UP in m.ours and TOOK_UP not in m.theirs
    ),
    "malformed packets that amqtt takes": lambda m: m.peer == AMQTT and bool(m.fault),
}
