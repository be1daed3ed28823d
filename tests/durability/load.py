"""The load of the rounds: terminals that publish, a gateway that changes things, and what was promised to both."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from outcomes import Broken
from test_acknowledged_is_stored import TERMINALS, Publisher, stored_numbers

from mqtt_bytes import field as mqtt_field
from mqtt_bytes import frame, login, publish
from running import Platform, wait_for

KEPT = b'{"kept": "%s"}'
_ACCEPTED, _RESUMED = b"\x20\x02\x00\x00", b"\x20\x02\x01\x00"
_ANSWER_S = 20
_PAUSE_S = 0.2  # after a refusal


@dataclass
class Promised:
    """What whoever was told of it may rely on."""

    readings: dict[str, set[int]] = field(default_factory=lambda: {uid: set() for uid in TERMINALS})
    terminals: set[str] = field(default_factory=set)  # that the gateway said are made
    sessions: set[str] = field(default_factory=set)  # of terminals that had their SUBACK, and went
    retained: set[str] = field(default_factory=set)  # of terminals that had the PUBACK of a retained message
    commands: set[str] = field(default_factory=set)  # to terminals, which the gateway said that it took
    delivered: set[str] = field(default_factory=set)  # of those, which the journal has said are delivered

    @property
    def acknowledged(self) -> int:
        """How many readings."""
        return sum(map(len, self.readings.values()))

    def copy(self) -> Promised:
        """As it is at this moment."""
        readings = {uid: set(numbers) for uid, numbers in self.readings.items()}
        kept = (self.terminals, self.sessions, self.retained, self.commands, self.delivered)
        return Promised(readings, *map(set, kept))

    def checked(self, platform: Platform) -> None:
        """Fails where some of it is not there; each waiting command goes to its terminal, once.

        Raises:
            Broken: says what.
        """
        for uid in TERMINALS:
            numbers = stored_numbers(platform, uid)
            lost, doubled = sorted(self.readings[uid] - set(numbers)), len(numbers) - len(set(numbers))
            if lost:
                raise Broken(f"{uid}: {len(lost)} acknowledged messages are lost, from {lost[0]} on", lost=len(lost))
            if doubled:
                raise Broken(f"{uid}: {doubled} messages are stored twice", doubled=doubled)
        for uid in sorted(self.terminals):
            assert platform.ask("get_terminal_item", uid=uid)["code"] == 200, f"terminal {uid} is lost"
        for uid in sorted(self.commands):
            self._check_command(platform, uid)

    def _check_command(self, platform: Platform, uid: str) -> None:
        journal = platform.call("get_command_list", terminal_id=uid)["data"]
        assert [each["command"] for each in journal] == ["Diag"], f"the command to {uid}: {journal}"
        if uid in self.delivered:
            assert journal[0]["state"] == "delivered", f"the command to {uid} was delivered: {journal}"
            return
        taken = resumed_session(platform.mqtt, uid)
        commands = [payload for topic, payload in taken if topic == f"p2p/{uid}"]
        assert commands == [b'{"Act":"Diag"}'], f"{uid}: {taken}"
        kept = [payload for topic, payload in taken if topic == kept_topic(uid)]
        assert kept == [KEPT % uid.encode()], f"the retained message of {uid}: {taken}"

        def is_delivered() -> bool:
            (entry,) = platform.call("get_command_list", terminal_id=uid)["data"]
            return bool(entry["state"] == "delivered")

        wait_for(is_delivered, f"the command to {uid} is told delivered", timeout_s=_ANSWER_S)
        self.delivered.add(uid)


def kept_topic(uid: str) -> str:
    """Of a terminal's retained message."""
    return f"g/{uid}/i"


@contextmanager
def _session(port: int, uid: str, expected: bytes) -> Iterator[socket.socket]:
    """A connection with the terminal's session, which stays when it ends."""
    opened = bytearray(login(uid, f"u-{uid}", f"pin-{uid}"[:16]))
    opened[9] &= ~2  # not a clean session
    with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S) as terminal:
        terminal.sendall(opened)
        found = _exactly(terminal, 4)
        assert found == expected, f"{uid}: CONNACK {found.hex()}"
        yield terminal
        terminal.sendall(b"\xe0\x00")


def _exactly(terminal: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = terminal.recv(count - len(found))
        if not more:
            raise ConnectionError("closed")
        found += more
    return found


def _packet(terminal: socket.socket) -> tuple[int, bytes]:
    """The next one: its first byte, and its body, of less than 16 KiB."""
    first, length = _exactly(terminal, 2)
    if length > 127:
        length += (_exactly(terminal, 1)[0] - 1) * 128
    return first, _exactly(terminal, length)


def connack(port: int, uid: str) -> str:
    """What a terminal is answered that logs in with a clean session; empty: its connection was closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S) as terminal:
        terminal.sendall(login(uid, f"u-{uid}", f"pin-{uid}"[:16]))
        return terminal.recv(4).hex()


def begin_session(port: int, uid: str) -> None:
    """The terminal subscribes to its commands, and goes; its session stays."""
    with _session(port, uid, _ACCEPTED) as terminal:
        terminal.sendall(frame(0x82, b"\0\1", mqtt_field(f"p2p/{uid}"), b"\1"))
        assert _packet(terminal) == (0x90, b"\0\1\1")


def retain(port: int, uid: str) -> None:
    """The terminal's retained message, on a connection beside its session."""
    message = bytearray(publish(kept_topic(uid), KEPT % uid.encode()))
    message[0] |= 1
    with _session(port, uid, _RESUMED) as terminal:
        terminal.sendall(message)
        assert _packet(terminal) == (0x40, b"\0\1")


def resumed_session(port: int, uid: str) -> list[tuple[str, bytes]]:
    """Topics and payloads of what has waited in a session, and of the terminal's retained message; acknowledged.

    Two messages are waited for, and whatever else comes until a PINGREQ after them is answered is there as well.
    """
    found: list[tuple[str, bytes]] = []
    has_subscribed = is_asked = False
    with _session(port, uid, _RESUMED) as terminal:
        terminal.sendall(frame(0x82, b"\0\1", mqtt_field(kept_topic(uid)), b"\1"))
        while True:
            try:
                first, body = _packet(terminal)
            except TimeoutError:
                return found
            if first >> 4 == 3:
                end = 2 + int.from_bytes(body[:2], "big")
                found.append((body[2:end].decode(), body[end + 2 :]))
                terminal.sendall(b"\x40\x02" + body[end : end + 2])
            elif first == 0x90:
                assert body == b"\0\1\1", f"{uid} may not have its retained message: {body.hex()}"
                has_subscribed = True
            elif first == 0xD0:
                return found
            if has_subscribed and len(found) >= 2 and not is_asked:
                terminal.sendall(b"\xc0\x00")
                is_asked = True


class Changes:
    """By the gateway, one after the other, until the platform ends: makes terminals, each of which leaves a session and
    a retained message, and sends each a command.
    """

    def __init__(self, platform: Platform, config: str, promised: Promised, round_number: int) -> None:
        self._platform, self._config, self._promised, self._round = platform, config, promised, round_number
        self._ended = threading.Event()
        self.answered = 0
        self.may_fail = False  # for as long as it is, what fails is noted, and the next terminal is made
        self.refused: list[str] = []
        self.failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="changes")
        self._thread.start()

    def cease(self) -> None:
        """The platform is about to be killed."""
        self._ended.set()

    @property
    def is_over(self) -> bool:
        """Nothing is changed any more."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """After it was."""
        self._thread.join(120)
        assert not self._thread.is_alive()
        if self.failed:
            raise self.failed

    def _run(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            may_fail = self.may_fail
            try:
                self._make(f"made-{self._round}-{number}")
            except Exception as error:  # noqa: BLE001 - told by ``join``, or by who lets it fail
                if may_fail or self.may_fail:
                    self.refused.append(str(error))
                    self._ended.wait(_PAUSE_S)
                    continue
                if not self._ended.is_set():
                    self.failed = error
                return

    def _make(self, uid: str) -> None:
        promised, port = self._promised, self._platform.mqtt
        self._platform.add_terminal(uid, self._config)
        promised.terminals.add(uid)
        begin_session(port, uid)
        promised.sessions.add(uid)
        retain(port, uid)
        promised.retained.add(uid)
        self._platform.call("publish_terminal_command", terminal_id=uid, command="Diag", value="")
        promised.commands.add(uid)
        self.answered += 1


def prepared(data: Path) -> str:
    """A data folder with the terminals of the load; the uid of their configuration."""
    with Platform(data) as platform:
        platform.login()
        config = platform.add_config()
        for uid in TERMINALS:
            platform.add_terminal(uid, config)
    return config


class Load:
    """All of it, under way on a platform until that ends.

    Args:
        following: the number that each terminal publishes next; kept up to date by ``join``.
    """

    def __init__(
        self, platform: Platform, config: str, promised: Promised, following: dict[str, int], *, round_number: int
    ) -> None:
        self._promised, self._following = promised, following
        self.publishers = [Publisher(platform.mqtt, uid, following[uid]) for uid in TERMINALS]
        self.changes = Changes(platform, config, promised, round_number)

    def wait(self, messages: int, changes: int = 2) -> None:
        """Until each terminal has had so many PUBACKs, and so many terminals are made."""
        wait_for(lambda: all(len(each.acknowledged) >= messages for each in self.publishers), "a load", timeout_s=120)
        wait_for(lambda: self.changes.answered >= changes or self.changes.failed, "changes", timeout_s=120)

    def so_far(self) -> Promised:
        """What has been promised by now."""
        kept = self._promised.copy()
        for each in self.publishers:
            kept.readings[each.uid] |= set(each.acknowledged)
        return kept

    def counts(self) -> Mapping[str, int]:
        """PUBACKs by terminal."""
        return {each.uid: len(each.acknowledged) for each in self.publishers}

    @property
    def silent_s(self) -> float:
        """The longest for which one of them had no PUBACK."""
        return max(each.silent_s for each in self.publishers)

    def cease(self) -> None:
        """The platform is about to be killed."""
        self.changes.cease()

    def join(self) -> None:
        """After it was."""
        self.changes.join()
        for publisher in self.publishers:
            publisher.thread.join(120)
            assert not publisher.thread.is_alive()
            self._following[publisher.uid] = publisher.next


def tell(what: str, number: int, promised: Promised, began_s: float) -> None:
    """A line of a round that has been done."""
    counts = f"{promised.acknowledged} readings, {len(promised.terminals)} terminals, {len(promised.commands)} commands"
    print(f"{what} {number}: {counts} promised; {time.monotonic() - began_s:.0f} s", flush=True)
