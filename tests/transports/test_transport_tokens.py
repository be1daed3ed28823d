"""A connection's rights: they come with a token that is checked once, and end when that is ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from api.api_rig import open_rig
from lasting import KINDS, Connection, Gateway, SocketConnection, open_ports
from own_platform import Ports
from terrazzo.database.port import Row
from terrazzo.domain.actor import SYSTEM
from terrazzo.times import now_us

HOUR_US = 3_600 * 1_000_000
End = Callable[[Gateway, Connection], Awaitable[None]]
"""Ends the viewer's token."""


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


async def ask_over_http(timed: Gateway, who: str, action: str, **fields: Any) -> dict[str, Any]:
    """The answer to a request with the token of somebody of the rig's, on no connection that stays."""
    headers = {"Authorization": f"Bearer {timed.rig.tokens[who]}"}
    url = f"http://127.0.0.1:{timed.http}/apiproxy/api"
    async with timed.client.post(url, json={"action": action, **fields}, headers=headers) as response:
        return dict(await response.json())


@pytest.mark.parametrize("kind", KINDS)
async def test_a_checked_token_is_good_while_the_connection_is_open(timed: Gateway, clock: Clock, kind: str) -> None:
    """Section 1 "Authentication", 5."""
    credential = f"Bearer {timed.rig.tokens['viewer']}"
    async with timed.connect(kind) as connection:
        await connection.ask("subscribe", kinds=["event"])
        clock.ahead_us = 300 * HOUR_US
        assert (await connection.ask("get_terminal_list"))["code"] == 200
        assert (await connection.ask("ping", Authorization=credential))["code"] == 200, "the same one again"
        timed.rig.services.live.publish("event", company_id=1, data="still")
        assert (await connection.receive())["data"] == "still"
        assert (await ask_over_http(timed, "viewer", "ping"))["code"] == 10402, "HTTP checks each time"
    async with timed.connect(kind, "nobody") as again:
        answer = await again.ask("ping", Authorization=credential)
        assert (answer["code"], answer["info"]) == (10402, "the token has expired; log in again")
        assert (await again.ask("get_terminal_list"))["code"] == 10402


async def test_the_token_of_an_upgrade_is_checked_at_once(timed: Gateway, clock: Clock) -> None:
    url = f"ws://127.0.0.1:{timed.http}/apiproxy/api"
    headers = {"Authorization": f"Bearer {timed.rig.tokens['viewer']}"}
    async with timed.client.ws_connect(url, headers=headers) as raw:
        clock.ahead_us = 3 * HOUR_US
        assert (await SocketConnection(raw).ask("get_terminal_list"))["code"] == 200
    async with timed.client.ws_connect(url, headers=headers) as raw:
        assert (await SocketConnection(raw).ask("get_terminal_list"))["code"] == 10402


async def test_a_token_that_failed_leaves_nothing_behind(timed: Gateway, clock: Clock) -> None:
    credential = f"Bearer {timed.rig.tokens['viewer']}"
    async with timed.connect("tcp") as connection:
        clock.ahead_us = 3 * HOUR_US
        assert (await connection.ask("ping", Authorization="Bearer other"))["code"] == 10402
        assert (await connection.ask("ping", Authorization=credential))["code"] == 10402, "its check was given up"


async def _log_out_here(timed: Gateway, connection: Connection) -> None:
    assert (await connection.ask("logout"))["code"] == 200


async def _log_out_there(timed: Gateway, connection: Connection) -> None:
    assert (await ask_over_http(timed, "viewer", "logout"))["code"] == 200


async def _change_the_password(timed: Gateway, connection: Connection) -> None:
    await _change(timed, "update_user", uid="viewer-user", password="quite another one")


async def _deactivate_the_user(timed: Gateway, connection: Connection) -> None:
    for value in (0, 1):  # who is active again logs in again
        await _change(timed, "update_user", uid="viewer-user", is_active=value)


async def _deactivate_the_company(timed: Gateway, connection: Connection) -> None:
    company = (await _user(timed, "viewer"))["permission_company_id"]
    for value in (0, 1):
        await timed.rig.services.entities.companies.update(SYSTEM, company, {"is_available": value})


async def _change(timed: Gateway, action: str, **fields: Any) -> None:
    answer = await ask_over_http(timed, "root", action, **fields)
    assert answer["code"] == 200, answer


async def _renew(timed: Gateway, who: str) -> None:
    """A token that is good by the clock as it is now."""
    timed.rig.tokens[who] = timed.rig.platform.metadata.tokens.issue_for(await _user(timed, who))


@pytest.mark.parametrize(
    ("end", "has_expired"),
    [
        (_log_out_here, False),
        (_log_out_here, True),
        (_log_out_there, False),
        (_change_the_password, True),
        (_deactivate_the_user, True),
        (_deactivate_the_company, True),
    ],
)
async def test_what_ends_a_token_ends_it_on_connections(
    timed: Gateway, clock: Clock, end: End, *, has_expired: bool
) -> None:
    """Also on those that are silent until the token's time is over and the revocation is no longer kept."""
    async with timed.connect("websocket") as connection, timed.connect("tcp") as other:
        await other.ask("subscribe", kinds=["event"])
        clock.ahead_us = 3 * HOUR_US if has_expired else 0
        await _renew(timed, "root")
        await end(timed, connection)
        timed.rig.services.live.publish("event", company_id=1, data="secret")
        assert (await other.receive())["end"]["code"] == 10402
        clock.ahead_us = 6 * HOUR_US
        await _renew(timed, "operator")
        assert (await ask_over_http(timed, "operator", "logout"))["code"] == 200, "which forgets older ones"
        for each in (connection, other):
            assert (await each.ask("get_terminal_list"))["code"] == 10402


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


async def _user(ports: Gateway, who: str) -> Row:
    row = await ports.rig.services.entities.users.by_name("admin" if who == "root" else f"{who}-user")
    assert row is not None
    return row
