"""A connection's rights: they come with a token, end with it, and are renewed by the next one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.api_rig import open_rig
from lasting import Gateway, open_ports
from own_platform import Ports
from terrazzo.times import now_us

HOUR_US = 3_600 * 1_000_000


class Clock:
    """Ours, put forward at will."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return now_us() + self.ahead_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def timed(tmp_path: Path, clock: Clock) -> AsyncIterator[Gateway]:
    async with open_rig(tmp_path, ports=Ports(clock=clock)) as rig, open_ports(rig) as opened:
        yield opened


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_rights_end_with_the_token_and_a_ping_renews_them(timed: Gateway, clock: Clock, kind: str) -> None:
    async with timed.connect(kind) as connection:
        subscribed = await connection.ask("subscribe", kinds=["event"])
        assert subscribed["code"] == 200
        clock.ahead_us = 3 * HOUR_US
        ended = await connection.receive()
        assert (ended["resp"], ended["subscription"]) == ("live", subscribed["result"]["subscription"])
        assert ended["end"] == {"code": 10402, "info": "the token has expired; log in again"}
        for _ in range(2):
            answer = await connection.ask("get_terminal_list")
            assert (answer["code"], answer["info"]) == (10402, "the token has expired; log in again")
        assert (await connection.ask("unsubscribe", subscription=1))["code"] == 10402
        renewed = timed.rig.services.tokens.issue_for(await _viewer(timed))
        assert (await connection.ask("ping", Authorization=f"Bearer {renewed}"))["code"] == 200
        assert (await connection.ask("get_terminal_list"))["code"] == 200
        assert (await connection.ask("subscribe", kinds=["event"]))["result"]["subscription"] == 2


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_a_ping_in_time_keeps_the_subscriptions(timed: Gateway, clock: Clock, kind: str) -> None:
    live = timed.rig.services.live
    async with timed.connect(kind) as connection:
        await connection.ask("subscribe", kinds=["event"])
        clock.ahead_us = HOUR_US
        renewed = timed.rig.services.tokens.issue_for(await _viewer(timed))
        assert (await connection.ask("ping", Authorization=f"Bearer {renewed}"))["code"] == 200
        clock.ahead_us = 2 * HOUR_US + HOUR_US // 2  # the first token's time is over
        live.publish("event", company_id=1, data="still")
        assert (await connection.receive())["data"] == "still"


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_nothing_is_sent_on_an_expired_token(timed: Gateway, clock: Clock, kind: str) -> None:
    live = timed.rig.services.live
    async with timed.connect(kind) as connection:
        await connection.ask("subscribe", kinds=["event"])
        clock.ahead_us = 3 * HOUR_US
        live.publish("event", company_id=1, data="secret")
        assert "end" in await connection.receive()


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_a_logout_ends_subscriptions_too(timed: Gateway, kind: str) -> None:
    async with timed.connect(kind) as connection:
        await connection.ask("subscribe", kinds=["event"])
        assert (await connection.ask("logout"))["code"] == 200
        assert (await connection.receive())["end"]["code"] == 10402


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_another_companys_token_ends_the_first_ones_subscriptions(timed: Gateway, kind: str) -> None:
    async with timed.connect(kind) as connection:
        await connection.ask("subscribe", kinds=["event"])
        assert (await connection.ask("ping", Authorization=f"Bearer {timed.rig.tokens['stranger']}"))["code"] == 200
        timed.rig.services.live.publish("event", company_id=1, data="not yours any more")
        assert (await connection.receive())["end"]["code"] == 10403


async def _viewer(ports: Gateway) -> dict[str, object]:
    row = await ports.rig.services.entities.users.by_name("viewer-user")
    assert row is not None
    return row
