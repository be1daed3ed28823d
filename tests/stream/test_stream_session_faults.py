"""Persistent sessions at fronts that stand still and wake, around a log that loses its leader or has no room."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import mqtt5
import pytest
from session_wire import Dial, NotLetIn, Wire, dial
from test_stream_front_hearing import Hearing, figure, stand, wait_sessions

from durability.test_acknowledged_is_stored import stored_numbers
from nats_servers import NatsServer, NatsServers, running_nats
from postgresql_server import PostgreSQL
from running import Platform, wait_for
from terrazzo_adapters.jetstream import Connection, JetStreamSettings
from terrazzo_adapters.jetstream.connection import Refused

T = TypeVar("T")

__all__ = ["dial"]

_JUNK = "x00.x00"  # of no client


def _let_in(dial: Dial, at: Platform, uid: str) -> Wire | None:
    """A terminal that has logged in; None where it is told to try again, as it does while the log answers late."""
    try:
        return dial(at, uid)
    except NotLetIn as refused:
        if "SERVER_UNAVAILABLE" in str(refused):
            return None
        raise


@pytest.mark.timeout(500)
def test_a_front_that_stood_still_has_nothing_more_to_say(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer, dial: Dial
) -> None:
    """What its clients had is another's by then: it neither sends nor acknowledges, and no will goes out again."""
    with stand(tmp_path, postgresql, nats_server, "fronts-still") as found:
        for uid in ("st-h", "st-w", "st-p", "st-l"):
            found.leader.add_terminal(uid, found.config, topic="pub:r,a,v,p,i,n;sub:g/#")
        first, second = found.cluster.front("f1"), found.cluster.front("f2")
        telling = found.terminal("st-t", second)
        watching = dial(second, "st-l")
        watching.subscribe("g/+/r", 1)
        hearing, dying, saying = dial(first, "st-h"), dial(first, "st-w", will=b'{"n":99}'), dial(first, "st-p")
        hearing.subscribe("g/+/a", 2)
        for at in (first, second, found.leader):
            wait_sessions(at, 4, 2)
        telling.publish("g/st-t/a", b'{"n":0}')
        unacknowledged = hearing.receive()
        assert isinstance(unacknowledged, mqtt5.PublishPacket)

        first.process.send_signal(signal.SIGSTOP)
        again = dial(second, "st-h", timeout_s=120)  # once the lease of the first is over
        assert again.present
        assert again.hear(1) == [b'{"n":0}']
        for number in range(1, 6):
            telling.publish("g/st-t/a", b'{"n":%d}' % number, number % 3 or 1)
        assert sorted(again.hear(5)) == [b'{"n":%d}' % number for number in range(1, 6)]
        again.silence()
        assert watching.hear(1) == [b'{"n":99}'], "the will of a client of a dead front"
        again.end()
        wait_for(lambda: figure(second, "terrazzo_sessions_known") == 4, "it goes on", timeout_s=60)
        telling.publish("g/st-t/a", b'{"n":6}')
        hearing.send(mqtt5.PubAckPacket(unacknowledged.packet_id))
        saying.publish("g/st-p/v", b'{"n":7}', 3)
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(60) == 1

        for each in (hearing, dying, saying):
            said = each.rest()
            assert all(isinstance(packet, mqtt5.DisconnectPacket) for packet in said), (each.uid, said)
        last = dial(second, "st-h")
        assert last.present
        assert last.hear(1) == [b'{"n":6}']
        last.silence()
        telling.publish("g/st-t/r", b'{"n":8}')
        assert watching.hear(1) == [b'{"n":8}'], "no will comes a second time"
        wait_for(lambda: stored_numbers(found.leader, "st-t")[:1] == [8], "what came last is stored", timeout_s=60)
        assert stored_numbers(found.leader, "st-w") == [99]


def asked(nats: NatsServer | NatsServers, name: str, work: Callable[[Connection], Awaitable[T]]) -> T:
    """What some work finds in the log of a cluster."""

    async def ask() -> T:
        connection = Connection(JetStreamSettings(url=nats.url, name=name, replicas=nats.count))
        await connection.open()
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(ask())


class Telling:
    """Publishes 0, 1, 2 ... at QoS 1 and 2 in turn, each when the one before is acknowledged, until it is stopped."""

    def __init__(self, at: Hearing, topic: str) -> None:
        self.acknowledged = 0
        self._at, self._topic = at, topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="telling")
        self._thread.start()

    def _tell(self) -> None:
        while not self._is_over.is_set():
            sent = self._at.client.publish(self._topic, b'{"n":%d}' % self.acknowledged, 1 + self.acknowledged % 2)
            while not sent.is_published():
                sent.wait_for_publish(1)
            self.acknowledged += 1

    def go_on(self, count: int) -> None:
        """Returns when so many more are acknowledged."""
        target = self.acknowledged + count
        wait_for(lambda: self.acknowledged >= target, "publishes are acknowledged", timeout_s=120)

    def stop(self) -> int:
        """How many were acknowledged."""
        self._is_over.set()
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.acknowledged


@pytest.mark.timeout(600)
def test_sessions_outlive_the_loss_of_the_server_that_leads_the_log(
    tmp_path: Path, postgresql: PostgreSQL, dial: Dial
) -> None:
    name = "fronts-log-leader"
    with running_nats(tmp_path / "nats", 3) as servers:
        nats = NatsServers(servers)
        with stand(tmp_path, postgresql, nats, name) as found:
            for uid in ("ll-1", "ll-2", "ll-3"):
                found.leader.add_terminal(uid, found.config, topic="pub:r;sub:g/#")
            first, second = found.cluster.front("f1"), found.cluster.front("f2")
            once, twice, away = (dial(first, uid) for uid in ("ll-1", "ll-2", "ll-3"))
            for wire, qos in ((once, 1), (twice, 2), (away, 2)):
                wire.subscribe("g/+/r", qos)
            away.end()
            wait_sessions(second, 3, 3)
            telling = Telling(found.terminal("ll-t", second), "g/ll-t/r")
            try:
                telling.go_on(20)
                info = asked(nats, name, lambda log: log.ask("STREAM.INFO.FRONTS_LOG_LEADER_QUEUES"))
                (leading,) = [each for each in servers if each.name == info["cluster"]["leader"]]
                leading.kill()
                telling.go_on(30)  # once the others have chosen
                leading.start()
                leading.wait()
                telling.go_on(20)
            finally:
                count = telling.stop()
            expected = [b'{"n":%d}' % number for number in range(count)]
            heard = once.hear_to(expected[-1])
            assert list(dict.fromkeys(heard)) == expected, "each, in order; at QoS 1 one may be there twice"
            again = dial(second, "ll-3")
            assert again.present
            for wire in (twice, again):
                assert sorted(wire.hear(count)) == sorted(expected), "each once"
                wire.silence()
            wait_for(lambda: len(stored_numbers(found.leader, "ll-t")) >= count, "all are stored", timeout_s=60)
            assert stored_numbers(found.leader, "ll-t") == list(reversed(range(count)))


async def fill(connection: Connection, kind: str) -> None:
    """Leaves a stream of a cluster no room, by messages that nobody asks for."""
    numbers = itertools.count(1)
    for size in (1 << 20, 1 << 16, 1 << 12, 1):
        with contextlib.suppress(Refused):
            while True:
                subject = f"{connection.settings.name}.{kind}.{_JUNK}.x{next(numbers):08x}"
                await connection.publish(subject, secrets.token_bytes(size), {})


@pytest.mark.timeout(500)
def test_where_the_log_has_no_room_for_sessions_reports_are_stored_and_no_state_is_acknowledged(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer, dial: Dial
) -> None:
    name = "fronts-full"

    async def make_room(connection: Connection) -> None:
        for kind in ("queues", "sessions"):
            asked = {"filter": f"{name}.{kind}.{_JUNK}.>"}
            await connection.ask(f"STREAM.PURGE.FRONTS_FULL_{kind.upper()}", asked)

    with stand(tmp_path, postgresql, nats_server, name) as found:
        for uid in ("fu-h", "fu-a", "fu-t", "fu-n"):
            found.leader.add_terminal(uid, found.config, topic="pub:r,a;sub:g/#")
        first, second = found.cluster.front("f1"), found.cluster.front("f2")
        hearing, away, telling = dial(first, "fu-h"), dial(first, "fu-a"), dial(second, "fu-t")
        for wire in (hearing, away):
            wire.subscribe("g/+/r", 1)
        away.end()
        wait_sessions(second, 3, 2)
        assert telling.tell("g/fu-t/r", b'{"n":0}') == 0
        assert hearing.hear(1) == [b'{"n":0}']

        asked(nats_server, name, lambda log: fill(log, "queues"))
        assert telling.tell("g/fu-t/r", b'{"n":1}') == 0, "the report is the log's, and stored"
        wait_for(lambda: figure(second, "terrazzo_sessions_queue_full_total") == 2, "what has no room is counted")
        hearing.silence()
        asked(nats_server, name, lambda log: fill(log, "sessions"))
        hearing.send(mqtt5.SubscribePacket(9, [mqtt5.TopicFilter("g/+/a", max_qos=mqtt5.QoS(1))]))
        (said,) = hearing.rest()
        assert isinstance(said, mqtt5.DisconnectPacket)
        assert said.reason_code == mqtt5.DisconnectReasonCode.QUOTA_EXCEEDED
        with pytest.raises(NotLetIn, match="QUOTA_EXCEEDED"):
            dial(second, "fu-n")
        for at in (first, second):
            assert at.unready_parts() == []

        asked(nats_server, name, make_room)
        assert telling.tell("g/fu-t/r", b'{"n":2}') == 0
        again = wait_for(lambda: _let_in(dial, second, "fu-a"), "a login when there is room")
        assert again.present
        assert again.hear(2) == [b'{"n":0}', b'{"n":2}']
        assert dial(first, "fu-h").hear_to(b'{"n":2}')[-1:] == [b'{"n":2}']
        dial(first, "fu-n")
        wait_for(lambda: stored_numbers(found.leader, "fu-t") == [2, 1, 0], "all are stored, once", timeout_s=60)
