"""Logging in and out, and proof of life."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.identity import held_by
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.record import record_of
from terrazzo.errors import NotAuthenticated
from terrazzo.reasons import say
from terrazzo.times import format_spaced

_Text = Annotated[str, Meta(min_length=1, max_length=1024)]


class Login(msgspec.Struct, kw_only=True):
    """A user's credentials; ``code``: of the second factor, for users who have one."""

    username: _Text
    password: _Text
    code: Annotated[str, Meta(max_length=64, description="of the second factor, or a recovery code")] | None = None


class Logout(msgspec.Struct, kw_only=True):
    """The token comes with the request as always."""


class Ping(msgspec.Struct, kw_only=True):
    """``message`` comes back."""

    message: Annotated[str, Meta(max_length=65_536)] | None = None


class User(msgspec.Struct):
    """Section 1 "User (login result)"."""

    id: int
    permission_company_id: str
    username: str
    head_image: str
    description: str
    mobile: str
    email: str
    is_active: int
    is_super: int
    is_default: int
    created_at: str
    updated_at: str
    token: str


class Pong(msgspec.Struct):
    """The message that was sent, or ``pong``."""

    pong: str


async def handle_login(services: Services, caller: Caller, request: Login) -> User:
    """A token for a name and a password; a connection is authenticated by it from here on."""
    row, token = await services.login.login(request.username, request.password, caller.address, code=request.code)
    return logged_in(services, caller, row, token)


def logged_in(services: Services, caller: Caller, row: Row, token: str) -> User:
    """The result of a login."""
    caller.token = token
    times = {name: format_spaced(row[name], services.zone) for name in ("created_at", "updated_at")}
    return record_of(User, row, times, {"permission_company_id": str(row["permission_company_id"]), "token": token})


async def handle_logout(services: Services, caller: Caller, request: Logout) -> Empty:
    """Ends the token that came with the request."""
    if not caller.token:
        raise NotAuthenticated(say("no_token"))
    await services.tokens.revoke(caller.token, held=held_by(caller), address=caller.address)
    caller.token = caller.held = None
    if caller.session is not None:
        caller.session.given = ""
    return Empty()


async def handle_ping(services: Services, actor: Actor, request: Ping) -> Pong:
    """Says that the platform is there and the token is good."""
    return Pong(request.message or "pong")


OPERATIONS = (
    Operation(
        name="login",
        summary="Logs a user in: the result carries the token",
        request=Login,
        result=User,
        permission=None,
        handler=handle_login,
        gives_token=True,
    ),
    Operation(
        name="logout",
        summary="Ends the token before its time",
        request=Logout,
        result=Empty,
        permission=None,
        handler=handle_logout,
    ),
    Operation(
        name="ping",
        summary="Answers, if the token is good; authenticates a WebSocket or TCP connection",
        request=Ping,
        result=Pong,
        permission=Role.VIEWER,
        handler=handle_ping,
    ),
)
