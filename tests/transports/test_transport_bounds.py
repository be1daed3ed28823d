"""Where requests begin and end in what a connection receives, and when it has been idle."""

from __future__ import annotations

import asyncio

import pytest

from terrazzo.api.transports.idle_clock import IdleClock
from terrazzo.api.transports.request_bounds import RequestBounds
from waiting import until

HEAD = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n"


def at_rest_after(reads: list[bytes], body_bytes: int = 2) -> bool:
    """Whether all that came is known to be one request, which has been answered."""
    bounds = RequestBounds()
    for data in reads:
        bounds.receive(data)
    bounds.end_head()
    assert not bounds.is_at_rest
    bounds.end_request(body_bytes)
    return bounds.is_at_rest


@pytest.mark.parametrize("at", range(1, len(HEAD) + 2))
def test_one_request_is_found_wherever_it_is_cut(at: int) -> None:
    whole = HEAD + b"{}"
    assert at_rest_after([whole[:at], whole[at:]])


@pytest.mark.parametrize(
    "reads",
    [
        [HEAD],
        [HEAD + b"{"],
        [HEAD + b"{}" + HEAD[:1]],
        [HEAD + b"{}" + HEAD + b"{}"],
        [HEAD + b"{}", HEAD + b"{}"],
        [HEAD.replace(b"\r", b"") + b"{}"],
    ],
    ids=["no body", "half a body", "more", "two at once", "two", "no end of the head"],
)
def test_anything_else_is_not_at_rest(reads: list[bytes]) -> None:
    assert not at_rest_after(reads)


def test_two_requests_ahead_with_bodies_of_one_length_are_two_requests() -> None:
    bounds = RequestBounds()
    bounds.receive((HEAD + b"{}") * 2)
    bounds.end_head()
    bounds.end_request(2)
    bounds.receive(HEAD + b"{}")  # a third, before the second is taken up
    bounds.end_head()
    bounds.end_request(2)
    assert not bounds.is_at_rest, "the third is still to be answered"


def test_an_unfinished_head_is_measured_and_a_finished_one_is_not() -> None:
    bounds = RequestBounds()
    bounds.receive(HEAD[:10])
    bounds.receive(HEAD[10:20])
    assert (bounds.head_bytes, bounds.is_head_complete, bounds.first_read) == (20, False, b"")
    bounds.receive(HEAD[20:])
    bounds.end_head()
    assert (bounds.head_bytes, bounds.is_head_complete) == (0, True)


async def test_idle_is_who_has_nothing_under_way_for_so_long() -> None:
    loop = asyncio.get_running_loop()
    idle: list[float] = []
    clock = IdleClock(0.05, lambda: idle.append(loop.time()))
    clock.is_held = True
    await asyncio.sleep(0.2)  # the clock is what this is about
    assert idle == []
    clock.restart()
    began_s = loop.time()
    await until(lambda: idle, "idle")
    assert idle[0] - began_s > 0.049
    await asyncio.sleep(0.1)
    assert len(idle) == 1


async def test_a_stopped_clock_says_nothing() -> None:
    idle: list[None] = []
    clock = IdleClock(0.01, lambda: idle.append(None))
    clock.stop()
    await asyncio.sleep(0.05)  # the clock is what this is about
    assert idle == []
