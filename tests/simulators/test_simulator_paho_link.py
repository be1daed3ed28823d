"""The paho connection of a terminal: mode ``auto``, reasons, and peers that break the protocol."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

import mqtt5
import pytest

from scram_broker import scram_broker
from terrazzo_simulators.device import Habits
from terrazzo_simulators.faults import Faults
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.link import DROPPED, QUEUED_MOST, LinkError, LinkOptions
from terrazzo_simulators.paho_link import PahoLink
from terrazzo_simulators.spec import Naming, TerminalSpec, generate_specs
from waiting import until

USERS = {"user": "secret"}


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def link_to(port: int, pool: ThreadPoolExecutor, *, protocol: str = "5.0", **options: Any) -> PahoLink:
    spec = TerminalSpec(uid="t1", username="user", pin="secret", protocol=protocol)
    return PahoLink(spec, LinkOptions(port=port, **{"timeout_s": 3, **options}), pool=pool, on_error=lambda: None)


def told(link: PahoLink, topic: str = "g/t1/r", payload: bytes = b"{}", qos: int = 1) -> list[int]:
    reasons: list[int] = []
    link.publish(topic, payload, qos=qos, correlation=None, settled=reasons.append)
    return reasons


@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
async def test_mode_auto_lets_in_and_again_within_the_same_second(protocol: str) -> None:
    specs = generate_specs(3, naming=Naming(), mode="auto", protocol=protocol)
    habits = Habits(interval_s=None, backoff_s=0.02, backoff_most_s=0.05)
    async with scram_broker(auto={spec.username: spec.pin for spec in specs}) as server:
        fleet = Fleet(specs, FleetOptions(link=LinkOptions(port=server.port), habits=habits, connect_rate=0))
        async with fleet.running():
            await asyncio.wait_for(fleet.connected(), 15)
            for times in (1, 2):
                for device in fleet.devices.values():
                    device.cut()
                await until(lambda times=times: fleet.statistics.connects == 3 * (times + 1), "all are back")
    assert fleet.statistics.login_refused == 0


async def test_a_clock_that_is_off_by_hours_keeps_mode_auto_out() -> None:
    (spec,) = generate_specs(1, naming=Naming(), mode="auto")
    async with scram_broker(auto={spec.username: spec.pin}) as server:
        habits = Habits(interval_s=None, backoff_s=0.02, backoff_most_s=0.05, faults=Faults(skew_s=1e6))
        fleet = Fleet([spec], FleetOptions(link=LinkOptions(port=server.port), habits=habits))
        async with fleet.running():
            await until(lambda: fleet.statistics.login_refused >= 2, "refusals")
    assert fleet.statistics.connects == 0


async def test_a_refused_publish_and_subscribe_tell_their_reason(pool: ThreadPoolExecutor) -> None:
    async with scram_broker(plain=USERS) as server:
        server.hooks.authorize_subscribe = lambda client, topic_filter: False
        link = link_to(server.port, pool)
        assert await link.open("secret") is False
        refused = [told(link, topic="g/other/r", qos=qos) for qos in (1, 2)]
        server.hooks.refusal = 0x99
        bad = told(link, payload=b"\xc1")
        await until(lambda: bad and all(refused), "all settled")
        assert (refused[0], bad) == ([0x87], [0x99])
        # paho passes over the reason of a PUBREC, sends PUBREL, and so learns of the refusal by PUBCOMP only.
        assert refused[1][0] >= 0x80
        await link.close()


async def test_the_servers_disconnect_is_told_with_its_reason(pool: ThreadPoolExecutor) -> None:
    async with scram_broker(plain=USERS) as server:
        first, second = link_to(server.port, pool), link_to(server.port, pool)
        await first.open("secret")
        await second.open("secret")
        await asyncio.wait_for(first.closed.wait(), 5)
        assert first.closed_reason == 0x8E
        await second.close()


async def test_the_queue_is_bounded(pool: ThreadPoolExecutor) -> None:
    async with scram_broker(plain=USERS) as server:
        link = link_to(server.port, pool)
        await link.open("secret")
        await link.close()
        reasons = [told(link) for _ in range(QUEUED_MOST + 2)]
        assert reasons[-2:] == [[DROPPED], [DROPPED]]
        assert told(link, qos=0) == [DROPPED]
        await link.open("secret")
        await until(lambda: link.outstanding == 0, "the queue is empty")
        assert reasons[:-2] == [[0]] * QUEUED_MOST
        assert len(server.hooks.taken) == QUEUED_MOST
        await link.close()


@asynccontextmanager
async def peer(*answers: bytes) -> AsyncIterator[int]:
    """A server that says its answers whatever it is told, and then nothing."""
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            for answer in answers:
                await reader.read(1_000)
                writer.write(answer)
            while await reader.read(1_000):
                pass
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.wait_for(left.wait(), 5)


@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x20\x02",
        b"\x20\x00",
        b"\x20\x01\x00",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x00\x00",
        b"\x90\x03\x00\x01\x00",
        b"\x40\x00",
        b"\x30\x02\x00\x09",
    ],
)
async def test_a_peer_that_breaks_the_protocol_is_left(pool: ThreadPoolExecutor, protocol: str, answer: bytes) -> None:
    async with peer(answer) as port:
        link = link_to(port, pool, protocol=protocol, timeout_s=0.4)
        with pytest.raises((LinkError, TimeoutError)):
            await link.open("secret")
        assert link.closed.is_set()


async def test_a_broken_packet_later_ends_the_connection(pool: ThreadPoolExecutor) -> None:
    welcome = mqtt5.ConnAckPacket().write()
    granted = mqtt5.SubAckPacket(1, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]).write()
    async with peer(welcome, granted, b"\x30\x02\x00\x09") as port:
        link = link_to(port, pool)
        assert await link.open("secret")
        told(link)
        await asyncio.wait_for(link.closed.wait(), 5)


async def test_waiting_for_a_connack_can_be_given_up(pool: ThreadPoolExecutor) -> None:
    async with peer() as port:
        link = link_to(port, pool)
        opening = asyncio.create_task(link.open("secret"))
        await asyncio.wait_for(until(lambda: not link.closed.is_set(), "TCP stands"), 5)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert link.closed.is_set()


async def test_a_host_that_does_not_answer_times_out(pool: ThreadPoolExecutor) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):  # fills the backlog; further SYNs are not answered
            link = link_to(port, pool, timeout_s=0.4)
            with pytest.raises((TimeoutError, OSError)):
                await link.open("secret")
            assert link.closed.is_set()


async def test_an_attempt_given_up_while_it_waits_for_a_thread_does_not_disturb_the_next() -> None:
    async with scram_broker(plain=USERS) as server:
        with ThreadPoolExecutor(1) as pool:
            busy = threading.Event()
            pool.submit(busy.wait, 10)
            link = link_to(server.port, pool, timeout_s=0.2)
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await link.open("secret")
            busy.set()
            await reach_open(link)
            reasons = told(link)
            await until(lambda: reasons == [0], "acknowledged")
            await link.close()
    assert len([client_id for client_id, _ in server.hooks.subscribed if client_id == "t1"]) == 1


async def reach_open(link: PahoLink) -> None:
    """Opens, where the attempt that was given up may take one more."""
    for _ in range(3):
        with suppress(LinkError, TimeoutError):
            await link.open("secret")
            return
    pytest.fail("the link does not open any more")


async def test_stopping_a_fleet_that_cannot_reach_its_host_is_quick() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            options = FleetOptions(link=LinkOptions(port=port, timeout_s=1), connect_rate=0)
            fleet = Fleet(generate_specs(50, naming=Naming()), options)
            fleet.start()
            await until(lambda: fleet.statistics.unreachable > 5, "attempts that timed out")
            started_s = time.monotonic()
            await fleet.stop()
            assert time.monotonic() - started_s < 5


async def test_a_line_that_is_cut_while_it_is_made_is_an_error_of_the_link() -> None:
    class CuttingPool(Executor):
        """Connects at once, and cuts the line before the event loop hears of it."""

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            done: Future[Any] = Future()
            done.set_result(fn(*args, **kwargs))
            link.cut()
            return done

    async with scram_broker() as server:
        spec = TerminalSpec(uid="t1", username="user", pin="secret")
        link = PahoLink(spec, LinkOptions(port=server.port), pool=CuttingPool(), on_error=lambda: None)
        with pytest.raises(LinkError):
            await link.open("secret")
