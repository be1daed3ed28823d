"""What was acknowledged and in which order, and whether what is there at the end keeps all of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim_client import Client, Got, Sent

HOT = 80


@dataclass(slots=True)
class Outcome:
    """What is there at the end of a run."""

    grids: dict[str, list[dict[str, Any]]]  # bodies in the order of arrival, by series
    mosaic: list[dict[str, Any]]
    events: list[int]  # the numbers of the reports that raised one, in the order of the database
    commands: dict[str, dict[str, Any]]  # the journal, by the command's value
    retained: dict[str, bytes]  # what a fresh subscriber gets


@dataclass(slots=True)
class Promises:
    """Written down while a run goes on (``Ledger`` of the clients)."""

    sent: dict[tuple[str, str], list[tuple[int, bytes]]] = field(default_factory=dict)  # QoS and payload, in order
    acknowledged: dict[tuple[str, str], set[bytes]] = field(default_factory=dict)
    retained: dict[str, list[bytes]] = field(default_factory=dict)  # all that was sent, in order
    retained_safe: dict[str, bytes] = field(default_factory=dict)
    wills: dict[tuple[str, int], bool] = field(default_factory=dict)  # by connection: whether it is due
    got: dict[str, list[Got]] = field(default_factory=dict)
    commands: list[tuple[str, str]] = field(default_factory=list)  # terminal and value, as they were journaled
    watching: bool = False
    watched: set[bytes] = field(default_factory=set)  # sent first after the watcher's SUBACK
    lost_sessions: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)  # PUBACKs of commands that were sent off
    disturbances: int = 0
    clock_went_back: bool = False
    in_doubt: set[bytes] = field(default_factory=set)  # at QoS 2, and the broker may have died before it noted that
    _known: set[str] = field(default_factory=set)

    def on_sent(self, client: Client, sent: Sent) -> None:
        """For the first time."""
        self.sent.setdefault((client.name, sent.topic), []).append((sent.qos, sent.payload))
        if self.watching:
            self.watched.add(sent.payload)
        if sent.retain:
            self.retained.setdefault(sent.topic, []).append(sent.payload)

    def on_acknowledged(self, client: Client, sent: Sent) -> None:
        """The server has it."""
        self.acknowledged.setdefault((client.name, sent.topic), set()).add(sent.payload)
        if sent.retain:
            self.retained_safe[sent.topic] = sent.payload

    def on_connected(self, client: Client, *, is_present: bool) -> None:
        """With or without its session."""
        if client.name in self._known and not is_present and not client.is_clean:
            self.lost_sessions.append(client.name)
        if client.subscribed:
            self._known.add(client.name)
        if client.will is not None:
            self.wills[client.name, client.connections] = True

    def on_subscribed(self, client: Client) -> None:
        """Whoever watches has all that is published from now on."""
        self.watching |= client.name == "watcher"
        self._known.add(client.name)

    def on_left(self, client: Client) -> None:
        """DISCONNECT went out: whether it arrives is open."""
        self.wills.pop((client.name, client.connections), None)

    def on_got(self, client: Client, got: Got) -> None:
        """A message came."""
        self.got.setdefault(client.name, []).append(got)


def broken(promises: Promises, outcome: Outcome) -> list[str]:
    """What was not kept, in words; empty: all was."""
    found: list[str] = []
    for check in (
        _reports,
        _wills,
        _mosaic,
        _events,
        _retained,
        _watched,
        _commands,
        _sessions,
    ):
        found += check(promises, outcome)
    return found


def _reports(promises: Promises, outcome: Outcome) -> Iterator[str]:
    for (name, topic), sent in promises.sent.items():
        stored = [body.get("n", body.get("k")) for body in outcome.grids.get(topic, [])]
        safe = {number(payload) for payload in promises.acknowledged.get((name, topic), ())}
        lost = safe - set(stored)
        if lost:
            yield f"{topic}: acknowledged and not stored: {sorted(lost)}"
        yield from _order(topic, [number(payload) for _, payload in sent], stored)
        if not promises.disturbances:
            yield from (f"{topic}: stored twice: {n}" for n, count in Counter(stored).items() if count > 1)


def _order(where: str, sent: Sequence[int], found: Sequence[Any]) -> Iterator[str]:
    """First arrivals are in the order of sending."""
    place = {n: index for index, n in enumerate(sent)}
    first = [n for n in dict.fromkeys(found) if n in place]
    if first != sorted(first, key=place.__getitem__):
        yield f"{where}: in another order than sent: {first}"


def _wills(promises: Promises, outcome: Outcome) -> Iterator[str]:
    for (name, connection), is_due in promises.wills.items():
        stored = [body.get("w") for body in outcome.grids.get(f"g/{name}/a", [])]
        if is_due and connection not in stored:
            yield f"{name}: the will of connection {connection} is not there"


def _mosaic(promises: Promises, outcome: Outcome) -> Iterator[str]:
    made = _changes([body["N"] for body in outcome.mosaic if "N" in body])
    stored = _changes([body["n"] for body in outcome.grids.get("g/s1/r", []) if "n" in body])
    if made != stored:
        yield f"the object has {made}, of the reports {stored}"


def _changes(values: Sequence[int]) -> list[int]:
    """Without what is the same as before: an object has a record where a value changes."""
    return [value for value, before in zip(values, (None, *values), strict=False) if value != before]


def _events(promises: Promises, outcome: Outcome) -> Iterator[str]:
    if promises.clock_went_back:
        return
    expected, is_hot = [], False
    for body in outcome.grids.get("g/s1/r", []):
        if body.get("t", 0) > HOT and not is_hot:
            expected.append(body["t"])
        is_hot = body.get("t", 0) > HOT
    if outcome.events != expected:
        yield f"events are {outcome.events}, and the reports say {expected}"


def _retained(promises: Promises, outcome: Outcome) -> Iterator[str]:
    for topic, safe in promises.retained_safe.items():
        sent = promises.retained[topic]
        allowed = sent[sent.index(safe) :]
        if outcome.retained.get(topic) not in allowed:
            yield f"{topic}: retained is {outcome.retained.get(topic)!r}, and {safe!r} was acknowledged"


def _watched(promises: Promises, outcome: Outcome) -> Iterator[str]:
    got = [each for each in promises.got.get("watcher", []) if not each.retain]
    payloads = Counter(each.payload for each in got)
    for key, sent in promises.sent.items():
        safe = promises.acknowledged.get(key, set()) & promises.watched
        lost = {payload for payload in safe if not payloads[payload]}
        if lost:
            yield f"watcher: acknowledged and never got: {sorted(lost)}"
        once = {payload for qos, payload in sent if qos == 2} - promises.in_doubt
        yield from (f"watcher: {payload!r} came {payloads[payload]} times" for payload in once if payloads[payload] > 1)
        mine = [number(each.payload) for each in got if each.topic == key[1]]
        yield from _order(f"watcher, {key[1]}", [number(payload) for _, payload in sent], mine)


def _commands(promises: Promises, outcome: Outcome) -> Iterator[str]:
    got: dict[str, list[Got]] = {}
    for messages in promises.got.values():
        for each in messages:
            if each.topic.startswith("p2p/"):
                got.setdefault(str(json.loads(each.payload).get("SET")), []).append(each)
    for _, value in promises.commands:
        row = outcome.commands.get(value)
        if row is None:
            yield f"command {value}: was accepted, and is not in the journal"
        elif row["state"] == "delivered" and value not in got:
            yield f"command {value}: is called delivered, and never came"
        elif row["state"] != "delivered":
            yield f"command {value}: is {row['state']} at the end"
        if len(got.get(value, ())) > 1 and not promises.disturbances:
            yield f"command {value}: came {len(got[value])} times, and nothing had happened"
    for terminal in {terminal for terminal, _ in promises.commands}:
        order = [int(value) for name, value in promises.commands if name == terminal]
        came = [
            int(json.loads(each.payload)["SET"]) for each in promises.got.get(terminal, []) if b"SET" in each.payload
        ]
        yield from _order(f"commands of {terminal}", order, came)


def _sessions(promises: Promises, outcome: Outcome) -> Iterator[str]:
    yield from (f"{name}: its session is gone" for name in promises.lost_sessions)


def number(payload: bytes) -> int:
    """The number that a report carries."""
    found = json.loads(payload)
    return int(next(found[name] for name in "nkw" if name in found))
