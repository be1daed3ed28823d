"""Who one is, what one may, and what a client has to know of the platform to show it."""

from __future__ import annotations

from typing import Literal

import msgspec

from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.times import format_spaced, now_us


class SessionQuery(msgspec.Struct, kw_only=True):
    """Nothing is needed."""


class LoginOptionsQuery(msgspec.Struct, kw_only=True):
    """Nothing is needed."""


class LoginOptions(msgspec.Struct):
    """What a login page offers beside name and password: single sign-on, a code by mail for a new password."""

    single_sign_on: bool
    password_reset: bool


class TerminalAddresses(msgspec.Struct):
    """Ports at which terminals log in: plain, over TLS, over WebSocket at /mqtt, and that over TLS; null: it is off."""

    port: int | None
    tls_port: int | None
    websocket_port: int | None
    websocket_tls_port: int | None


class MapSource(msgspec.Struct):
    """Pictures of a map, 256 pixels wide (``http.map_tiles``), and whose they are; empty: none are configured."""

    tiles: str
    attribution: str


class OwnSession(msgspec.Struct):
    """Whose token it is. ``zone``: of all times without an offset; ``now``: the platform's clock, in that zone;
    ``idle_s``: for which a session in a cookie may stay unused. ``by_sso``: logs in at the provider.
    ``command_expiry_s``: for which a command waits for its terminal, at most.
    """

    id: int
    username: str
    role: Literal["viewer", "operator", "admin"]
    is_super: int
    has_second_factor: int
    by_sso: int
    company_id: str
    company: str
    zone: str
    now: str
    now_us: int
    idle_s: float
    command_expiry_s: float
    version: str
    mqtt: TerminalAddresses
    map: MapSource


async def handle_get_session(services: Services, actor: Actor, request: SessionQuery) -> OwnSession:
    """What a client asks first."""
    company, now, ports = await services.entities.companies.item(SYSTEM, actor.company_id), now_us(), services.mqtt
    user = await services.entities.users.item(SYSTEM, actor.user_id)
    return OwnSession(
        id=actor.user_id,
        username=actor.username,
        role=_ROLES[actor.role],
        is_super=int(actor.is_super),
        has_second_factor=user["has_second_factor"],
        by_sso=user["by_sso"],
        company_id=str(actor.company_id),
        company=company["name"],
        zone=str(services.zone),
        now=format_spaced(now, services.zone),
        now_us=now,
        idle_s=services.session_s,
        command_expiry_s=services.command_expiry_s,
        version=services.version,
        mqtt=TerminalAddresses(ports.plain, ports.tls, ports.websocket, ports.websocket_tls),
        map=MapSource(services.map_tiles.address, services.map_tiles.attribution),
    )


async def handle_get_login_options(services: Services, caller: Caller, request: LoginOptionsQuery) -> LoginOptions:
    """Says of what is configured only whether it is."""
    return LoginOptions(services.single_sign_on.is_configured, services.password_resets.is_configured)


_ROLES: dict[Role, Literal["viewer", "operator", "admin"]] = {
    Role.VIEWER: "viewer",
    Role.OPERATOR: "operator",
    Role.ADMIN: "admin",
}

OPERATIONS = (
    Operation(
        name="get_login_options",
        summary="What a login page offers beside name and password",
        request=LoginOptionsQuery,
        result=LoginOptions,
        permission=None,
        handler=handle_get_login_options,
    ),
    Operation(
        name="get_session",
        summary="Who one is and may be, the platform's time zone, clock, version and MQTT ports",
        request=SessionQuery,
        result=OwnSession,
        permission=Role.VIEWER,
        handler=handle_get_session,
    ),
)
