"""The pace of CONNECTs: in turn by address, never faster than it is set, and nobody waits who has gone."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from listener_stand import ACCEPTED_4, connect

from terrazzo_broker.admission.connect_pace import ConnectPace, Turn
from waiting import until


async def test_addresses_have_their_turns_one_after_the_other():
    pace, served = ConnectPace(100, 10, time.monotonic), []
    for _ in range(5):  # what goes at once
        assert pace.enter("flood", object(), partial(served.append, "flood")) is Turn.NOW
    for _ in range(50):
        assert pace.enter("flood", object(), partial(served.append, "flood")) is Turn.LATER
    for share in ("first", "second"):
        pace.enter(share, object(), partial(served.append, share))
    await until(lambda: len(served) == 52)
    assert sorted(served[:3]) == ["first", "flood", "second"]


async def test_a_turn_of_the_loop_takes_few_however_many_may_go():
    pace, served, turns = ConnectPace(100_000, 10, time.monotonic), [], [0]

    def count_turns() -> None:
        turns[0] += 1
        asyncio.get_running_loop().call_soon(count_turns)

    count_turns()
    for number in range(200):
        pace.enter(str(number % 7), number, lambda: served.append(turns[0]))
    await until(lambda: len(served) == 195)
    assert max(served.count(turn) for turn in served) <= 5


async def test_no_faster_than_it_is_set():
    pace, served = ConnectPace(100, 10, time.monotonic), []
    began_s = time.monotonic()
    turns = [pace.enter(str(n % 3), n, partial(served.append, n)) for n in range(45)]
    assert turns == [Turn.NOW] * 5 + [Turn.LATER] * 40
    await until(lambda: len(served) == 40)
    assert time.monotonic() - began_s > 0.38
    assert sorted(served) == list(range(5, 45))


def test_who_waits_does_not_keep_the_loop_busy():
    """A look at the clock for each that is let through, and not one after the other while there is nobody to let in."""
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return time.monotonic()

    async def wait_for_all() -> None:
        pace, served = ConnectPace(1_500, 10, clock), []
        turns = [pace.enter(str(n % 7), n, partial(served.append, n)) for n in range(400)]
        await until(lambda: len(served) == turns.count(Turn.LATER))

    uvloop.run(wait_for_all())
    assert looks <= 2 * 400


async def test_one_that_fails_holds_up_nobody():
    pace, served = ConnectPace(100, 10, time.monotonic), []

    def fail() -> None:
        raise RuntimeError("its own trouble")

    for n in range(8):
        pace.enter("a", n, fail if n == 6 else partial(served.append, n))
    await until(lambda: served == [5, 7])


async def test_a_queue_is_as_long_as_can_be_served_in_time():
    pace = ConnectPace(10, 2, time.monotonic)
    turns = [pace.enter("a", n, lambda: None) for n in range(25)]
    assert turns == [Turn.NOW] + [Turn.LATER] * 20 + [Turn.NEVER] * 4
    assert pace.enter("b", 0, lambda: None) is Turn.LATER
    for n in range(1, 21):
        assert pace.is_waiting("a", n)
        pace.leave("a", n)
    pace.leave("a", 3)  # more than once is no error
    pace.leave("b", 0)
    assert not pace.is_waiting("a", 1)


async def test_who_has_gone_takes_no_turn(start, dial):
    """Connecting, asking and hanging up again and again leaves no queue behind that others would wait for."""
    broker = start(connects_per_second=2, connect_timeout_s=60)
    port = await broker.listen_tcp("127.0.0.1", 0)
    crowd = [await dial(port, local_addr=("127.0.0.2", 0)) for _ in range(40)]
    for peer in crowd:
        peer.send(connect("c"))
    await until(lambda: broker.stats.connects_delayed == 39)
    for peer in crowd:
        peer.writer.transport.abort()
    await until(lambda: broker.stats.connections == 0)
    neighbour = await dial(port, local_addr=("127.0.0.2", 0))
    assert await neighbour.login("d") == ACCEPTED_4
    assert len(broker.hooks.requests) < 10


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
@settings(max_examples=60)
def test_everybody_who_waits_is_served_once(comings):
    """Whatever comes and goes: all that stay have their turn, nobody twice, and who left has none."""

    async def run() -> None:
        pace, served, expected = ConnectPace(10_000, 10, time.monotonic), [], []
        pace.enter("z", object(), lambda: None)
        for n, (share, goes) in enumerate(comings):
            turn = pace.enter(share, n, partial(served.append, n))
            if goes:
                pace.leave(share, n)
            elif turn is Turn.LATER:
                expected.append(n)
        await until(lambda: sorted(served) == expected)
        assert not any(pace.is_waiting(share, n) for n, (share, _) in enumerate(comings))

    asyncio.run(run())
