"""Connections are looked at when their time has come, not each twice a second, and who has gone leaves nothing."""

from __future__ import annotations

from typing import Any

import pytest

from terrazzo_broker import expiry
from terrazzo_broker.connection_state import ConnectionState, ReadHold
from terrazzo_broker.connections import Connections
from terrazzo_broker.stats import Stats

CONNECT_TIMEOUT_S = 10.0


class Transport:
    """One that is being closed; of TLS it can't be closed by half, and has words of its own to say."""

    def __init__(self) -> None:
        self.is_aborted, self.unsent, self.is_tls = False, 0, False

    def is_closing(self) -> bool:
        return True

    def can_write_eof(self) -> bool:
        return not self.is_tls

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.is_aborted = True


class Silent:
    """A connection whose client sends nothing more."""

    def __init__(self, now_s: float) -> None:
        self.transport, self.state, self.holds = Transport(), ConnectionState.NEW, 0
        self.keep_alive_s, self.address = 0, "192.0.2.1"
        self.born_s = self.seen_s = now_s
        self.peer: Any = None
        self.ended = ""

    def give_way(self) -> None:
        raise AssertionError("nobody needs its place")

    def give_up(self) -> None:
        self.ended = "no login"

    def tell_refused(self, cause: Any, reason: int, detail: str) -> None:
        self.ended = detail

    def close(self, why: str, *, reason: int) -> None:
        self.state = ConnectionState.CLOSED


class Admission:
    def enter(self, address: str) -> Any:
        return self

    def on_logged_in(self, peer: Any) -> None: ...

    def leave(self, peer: Any) -> None: ...


class Stand:
    """Connections, and a sweep over them by a clock of the test's own."""

    def __init__(self) -> None:
        self.now_s, self.looks = 1_000.0, 0
        self.stats = Stats()
        self.settings = type("", (), {"connect_timeout_s": CONNECT_TIMEOUT_S})
        self.connections = Connections(self.stats, Admission(), connect_timeout_s=CONNECT_TIMEOUT_S)  # type: ignore[arg-type]

    def open(self) -> Silent:
        connection = Silent(self.now_s)
        self.connections.on_opened(connection)  # type: ignore[arg-type]
        return connection

    def log_in(self, keep_alive_s: int) -> Silent:
        connection = self.open()
        connection.state, connection.keep_alive_s = ConnectionState.OPEN, keep_alive_s
        self.connections.on_logged_in(connection)  # type: ignore[arg-type]
        return connection

    def sweep(self, *, until_s: float) -> None:
        """Twice a second, as the broker does."""
        while self.now_s < until_s:
            self.now_s += 0.5
            for connection in self.connections.take_due(self.now_s):
                self.looks += 1
                again_s = expiry._look_at(self, connection, self.now_s)  # type: ignore[arg-type]
                if again_s is not None:
                    self.connections.look_at(connection, again_s)


@pytest.fixture
def stand() -> Stand:
    return Stand()


@pytest.mark.parametrize("keep_alive_s", [1, 5, 60, 3_600])
def test_who_is_silent_for_one_and_a_half_times_its_keep_alive_is_ended(stand: Stand, keep_alive_s: int) -> None:
    connection, began_s = stand.log_in(keep_alive_s), stand.now_s
    stand.sweep(until_s=began_s + keep_alive_s * 1.5)
    assert not connection.ended
    stand.sweep(until_s=stand.now_s + 1)
    assert connection.ended == f"silent for more than {keep_alive_s * 3 // 2} s"
    assert stand.stats.keepalive_timeouts == 1


def test_who_sends_something_now_and_then_is_looked_at_now_and_then(stand: Stand) -> None:
    talking = [stand.log_in(60) for _ in range(1_000)]
    for _ in range(60):
        stand.sweep(until_s=stand.now_s + 30)
        for connection in talking:
            connection.seen_s = stand.now_s
    assert not any(connection.ended for connection in talking)
    assert stand.looks < 1_000 * 1_800 / 45  # half an hour; each was looked at 3,600 times


def test_without_a_keep_alive_it_is_looked_at_once(stand: Stand) -> None:
    connection = stand.log_in(0)
    stand.sweep(until_s=stand.now_s + 10_000)
    assert (connection.ended, stand.looks) == ("", 1)


def test_who_does_not_log_in_is_given_up(stand: Stand) -> None:
    connection, began_s = stand.open(), stand.now_s
    stand.sweep(until_s=began_s + CONNECT_TIMEOUT_S)
    assert not connection.ended
    stand.sweep(until_s=stand.now_s + 1)
    assert connection.ended == "no login"


def test_who_is_not_read_is_not_silent(stand: Stand) -> None:
    connection, began_s = stand.log_in(10), stand.now_s
    connection.holds = ReadHold.TURN
    stand.sweep(until_s=began_s + 100)
    assert not connection.ended
    connection.holds = ReadHold.DECIDING
    stand.sweep(until_s=stand.now_s + 14)
    assert not connection.ended
    stand.sweep(until_s=stand.now_s + 2)
    assert connection.ended


@pytest.mark.parametrize(("unsent", "is_tls"), [(100, False), (0, True)])
def test_who_does_not_take_the_last_bytes_is_cut_off_after_five_seconds(
    stand: Stand, unsent: int, is_tls: bool
) -> None:
    connection = stand.log_in(3_600)
    connection.transport.unsent, connection.transport.is_tls = unsent, is_tls
    connection.state = ConnectionState.CLOSED
    stand.connections.on_closing(connection, stand.now_s)  # type: ignore[arg-type]
    stand.sweep(until_s=stand.now_s + 5)
    assert not connection.transport.is_aborted
    stand.sweep(until_s=stand.now_s + 1)
    assert connection.transport.is_aborted


def test_who_has_gone_leaves_nothing(stand: Stand) -> None:
    for number in range(10_000):
        connection = stand.log_in(number % 65_536)
        connection.state = ConnectionState.CLOSED
        stand.connections.on_closing(connection, stand.now_s)  # type: ignore[arg-type]
        stand.connections.on_closed(connection)  # type: ignore[arg-type]
        stand.connections.look_at(connection, stand.now_s)  # type: ignore[arg-type]  # too late
    assert not stand.connections._due
    assert list(stand.connections) == []
