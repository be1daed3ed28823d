"""What a leader knows of terminals at fronts, and how it sends to them, over real requests of the log's servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
from test_stream_reports import terminal

from terrazzo.domain.registry import Registry
from terrazzo.embedded.front_terminals import FrontTerminals, FrontTerminalsStats
from terrazzo.ports.bus import DeliveryFate
from terrazzo.ports.stream import Calls, LogUnavailable, NobodyAnswers
from terrazzo.replication.front_events import (
    Connected,
    Disconnected,
    EndRequest,
    Fate,
    FrontAnswer,
    FrontEvent,
    FrontRequest,
    Ready,
    RollBegins,
    RollEnds,
    SendRequest,
)
from terrazzo.terminals.presence import PresenceRegister
from terrazzo_adapters.jetstream import Connection, JetStreamCalls
from terrazzo_adapters.jetstream.connection import next_message
from terrazzo_broker.hooks import Client
from waiting import until


def connected(uid: str, session: int = 1, *, is_ready: bool = True) -> Connected:
    return Connected(uid, session, session, "10.0.0.7", 4711, 5, "tcp", uid, 60, is_ready)


class HeldCalls:
    """Requests that fronts answer when a test says so, in any order."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, FrontRequest]] = []
        self.answers: dict[str, asyncio.Future[bool]] = {}  # by front; of the others at once

    async def ask(self, node: str, body: bytes, *, timeout_s: float) -> bytes:
        self.asked.append((node, msgspec.msgpack.decode(body, type=FrontRequest)))
        held = self.answers.get(node)
        return msgspec.msgpack.encode(FrontAnswer(True if held is None else await held))

    async def serve(self, node: str, answer: Callable[[bytes], bytes]) -> None:
        raise AssertionError("it is the leader who asks")


class Leader:
    """A leader's view of fronts, and what its parts were told."""

    def __init__(self, calls: Calls, terminals: int = 2) -> None:
        self.registry, self.presence = Registry(), PresenceRegister()
        for number in range(1, terminals + 1):
            self.registry.put_terminal(terminal(number))
        self.ready: list[str] = []
        self.late: list[tuple[str, bytes, DeliveryFate]] = []
        self.told: list[object] = []
        self.own: dict[str, int] = {}  # when terminals connected to this node
        self.terminals = FrontTerminals(
            calls,
            epoch=5,
            stats=FrontTerminalsStats(),
            registry=self.registry,
            presence=self.presence,
            end_older=lambda event: self.own.get(event.uid, 0) < event.connected_us,
            on_ready=self.ready.append,
            on_late_fate=lambda *late: self.late.append(late),
        )

    def online(self, uid: str) -> tuple[bool, str]:
        found = self.presence.presence(uid)
        return found.online, found.disconnect_reason

    def send(self, uid: str, correlation: bytes = b"c") -> None:
        on = self.told.append
        self.terminals.send(uid, b"{}", correlation=correlation, on_sent=on, on_fate=on)


@pytest.fixture
async def calls(connection: Connection) -> JetStreamCalls:
    return JetStreamCalls(connection)


@pytest.fixture
async def leader(calls: JetStreamCalls) -> AsyncIterator[Leader]:
    made = Leader(calls)
    task = asyncio.create_task(made.terminals.work())
    yield made
    task.cancel()
    await asyncio.wait({task})


async def test_a_roll_says_who_is_there_and_who_is_not(leader: Leader) -> None:
    told = leader.terminals.on_events
    told("f", [connected("t1"), connected("t2", is_ready=False), connected("nobody")])
    assert (leader.online("t1"), leader.online("t2")) == ((True, ""), (True, ""))
    assert leader.ready == ["t1"]
    assert (leader.terminals.holds("t1"), leader.terminals.holds("t2")) == (True, False)
    told("f", [Ready("t2")])
    assert leader.ready == ["t1", "t2"]
    told("f", [RollBegins(), connected("t2"), RollEnds()])
    assert leader.online("t1") == (False, "its front doesn't name it any more")
    assert leader.online("t2") == (True, "")
    assert leader.ready == ["t1", "t2"], "it was connected all the while"
    assert leader.terminals.nodes() == {"f"}
    told("f", [Disconnected("t2", 99, "an older connection", 7, 3)])
    assert leader.online("t2") == (True, "")
    told("g", [connected("t2", 2)])  # by now at another front
    told("f", [Disconnected("t2", 1, "taken over", 7, 3)])
    assert leader.online("t2") == (True, "")
    leader.terminals.on_front_gone("g")
    assert leader.online("t2") == (False, "the front g is gone")
    assert leader.terminals.stats.connected == 0


async def test_a_terminal_that_comes_to_the_leader_is_ended_at_its_front(leader: Leader, calls: JetStreamCalls) -> None:
    ended: list[FrontRequest] = []

    def answer(body: bytes) -> bytes:
        ended.append(msgspec.msgpack.decode(body, type=FrontRequest))
        return msgspec.msgpack.encode(FrontAnswer(is_done=True))

    serving = asyncio.create_task(calls.serve("f", answer))
    leader.terminals.on_events("f", [connected("t1", 5)])
    own = Client("t1", None, 5, "", 0, "tcp", 9, 0, owner="2")
    while not ended:  # it serves in a moment
        leader.presence.on_connected(own)
        await asyncio.sleep(0.05)
    assert ended[0] == EndRequest("t1")
    assert not leader.terminals.holds("t1")
    leader.terminals.on_events("f", [Disconnected("t1", 5, "taken over", 7, 3)])
    assert leader.online("t1") == (True, "")
    ended.clear()
    leader.own["t1"] = 9
    leader.terminals.on_events("f", [connected("t1", 8)])
    await until(lambda: ended == [EndRequest("t1")], "the later one is this node's")
    assert leader.terminals.nodes() == set()
    leader.terminals.on_events("f", [connected("t1", 10)])
    assert leader.terminals.holds("t1")
    serving.cancel()
    await asyncio.wait({serving})


async def test_sent_is_what_the_front_says_and_delivered_what_the_terminal_says(
    leader: Leader, calls: JetStreamCalls
) -> None:
    asked: list[SendRequest] = []
    is_there = True

    def answer(body: bytes) -> bytes:
        asked.append(msgspec.msgpack.decode(body, type=SendRequest))
        return msgspec.msgpack.encode(FrontAnswer(is_there))

    leader.terminals.on_events("f", [connected("t1")])
    leader.send("t1")
    await until(lambda: leader.told == [False], "nobody serves the calls of this front")
    serving = asyncio.create_task(calls.serve("f", answer))
    while not asked:  # it serves in a moment
        leader.told.clear()
        leader.send("t1")
        await until(lambda: leader.told)
    assert asked == [SendRequest(5, "t1", b"{}", b"c")]
    assert leader.told == [True]
    leader.terminals.on_events("f", [Fate("t1", b"c", "delivered"), Fate("t1", b"older", "lost"), Fate("t1", b"", "?")])
    assert leader.told == [True, DeliveryFate.DELIVERED]
    assert leader.late == [("t1", b"older", DeliveryFate.LOST)]
    is_there = False
    leader.told.clear()
    leader.send("t1", b"d")
    await until(lambda: leader.told == [False])
    is_there = True
    leader.told.clear()
    leader.send("t1", b"e")
    await until(lambda: leader.told == [True])
    leader.terminals.on_front_gone("f")
    assert leader.told == [True, DeliveryFate.LOST]
    leader.told.clear()
    leader.send("t1", b"f")
    assert leader.told == [False], "known at once"
    serving.cancel()
    await asyncio.wait({serving})


async def test_what_nobody_says_is_lost_and_asked_again(
    calls: JetStreamCalls, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrazzo.embedded.front_terminals._ANSWER_S", 0.2)
    monkeypatch.setattr("terrazzo.embedded.front_terminals._AGAIN_S", 0.1)
    silent = await connection.subscribe(f"{connection.settings.name}.call.f")
    leader = Leader(calls)
    task = asyncio.create_task(leader.terminals.work())
    leader.terminals.on_events("f", [connected("t1")])
    leader.send("t1")
    await until(lambda: leader.told == [DeliveryFate.LOST])
    await until(lambda: leader.ready == ["t1", "t1"])
    assert leader.terminals.stats.unanswered == 1
    leader.terminals.on_events("f", [Fate("t1", b"c", "delivered")])
    assert leader.late == [("t1", b"c", DeliveryFate.DELIVERED)]
    with pytest.raises(NobodyAnswers):
        await calls.ask("nobody", b"", timeout_s=5.0)
    with pytest.raises(LogUnavailable):
        await calls.ask("f", b"", timeout_s=0.05)
    task.cancel()
    await asyncio.wait({task})
    await connection.unsubscribe(silent)


async def test_a_front_that_does_not_answer_keeps_no_message_from_the_others() -> None:
    calls, count = HeldCalls(), 200
    calls.answers["slow"] = asyncio.get_running_loop().create_future()
    leader = Leader(calls, count)
    task = asyncio.create_task(leader.terminals.work())
    for number in range(2, count + 1):
        leader.terminals.on_events("slow", [connected(f"t{number}")])
        leader.send(f"t{number}")
    leader.terminals.on_events("swift", [connected("t1")])
    leader.send("t1")
    await until(lambda: leader.told == [True])
    assert len([node for node, _ in calls.asked if node == "slow"]) == 64, "so many are under way"
    leader.terminals.on_front_gone("slow")
    assert leader.told == [True] + [DeliveryFate.LOST] * (count - 1)
    calls.answers["slow"].set_result(True)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(calls.asked) == 65, "what nobody waits for any more is not asked"
    assert len(leader.told) == count
    task.cancel()
    await asyncio.wait({task})


async def test_what_a_former_front_says_is_not_about_what_another_one_was_asked() -> None:
    calls = HeldCalls()
    former = calls.answers["f"] = asyncio.get_running_loop().create_future()
    leader = Leader(calls)
    task = asyncio.create_task(leader.terminals.work())
    leader.terminals.on_events("f", [connected("t1")])
    leader.send("t1")
    await until(lambda: len(calls.asked) == 1)
    leader.terminals.on_events("g", [connected("t1", 2)])
    assert leader.told == [DeliveryFate.LOST]
    leader.send("t1")
    await until(lambda: leader.told == [DeliveryFate.LOST, True])
    former.set_result(False)
    for _ in range(20):
        await asyncio.sleep(0)
    assert leader.told == [DeliveryFate.LOST, True], "it is sent, and its fate is not known"
    leader.terminals.on_events("g", [Fate("t1", b"c", "delivered")])
    assert leader.told == [DeliveryFate.LOST, True, DeliveryFate.DELIVERED]
    task.cancel()
    await asyncio.wait({task})


async def test_a_cancellation_that_comes_with_a_message_is_not_lost() -> None:
    """Of a front that was stopped and woke: what it was asked meanwhile came as it ended, and it never did."""

    class Losing:
        async def next_msg(self, timeout: float) -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(timeout)
            return "a message"

    waiting = asyncio.create_task(next_message(Losing(), 60.0))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_events_are_of_a_closed_set() -> None:
    """A later one is refused with its frame, whose version it would be."""
    decoder = msgspec.msgpack.Decoder(list[FrontEvent])
    assert decoder.decode(msgspec.msgpack.encode([RollBegins(), connected("t1"), RollEnds()]))[1] == connected("t1")
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(msgspec.msgpack.encode([[99]]))
