"""Links that show one dashboard on a wall, and what such a link reaches: that dashboard's data and nothing else.

The key comes where a token would. No other operation takes it; what these answer is made of the dashboard as it is.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from typing import Any, NamedTuple

import msgspec

from terrazzo.access.wall_links import WallLink
from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.variable_definitions import (
    ObjectVariable,
    VariablesOfObject,
    handle_get_object_variable_list,
)
from terrazzo.api.operations.files import FileUid
from terrazzo.api.operations.history.charts import Chart, MosaicChart, handle_get_mosaic_chart
from terrazzo.api.operations.history.mosaic import Keys
from terrazzo.database.port import Row
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.errors import BadParameter, NotAuthenticated, NotFound, NotPermitted
from terrazzo.objects.dashboard_values import read_dashboard_pictures, read_dashboard_values
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog
from terrazzo.times import format_spaced, now_us

_log = SparseLog(logging.getLogger(__name__))

MOST_PICTURE = 4 << 20  # bytes


class LinkOfDashboard(msgspec.Struct, kw_only=True):
    """Which dashboard, by its uid or id."""

    uid: Key


class RenewWallLink(msgspec.Struct, kw_only=True):
    """A link that shows this dashboard; ``object_id``: for this object in place of its pages' own."""

    uid: Key
    object_id: Key | None = None


class WallLinkRecord(msgspec.Struct):
    """A dashboard's link, without its key; ``prefix`` is the key's beginning."""

    uid: str
    object_id: str | None
    prefix: str
    created_by: int
    created: str


class WallLinkCreated(WallLinkRecord):
    """The new link with its key, which is shown this once. The page is ``/#/wall?key=<key>``."""

    key: str


class WallLinkFound(msgspec.Struct):
    """``link`` is null where the dashboard has none."""

    link: WallLinkRecord | None


class WallLinkEnded(msgspec.Struct):
    """Whether there was one."""

    ended: bool


class GetWall(msgspec.Struct, kw_only=True):
    """The key comes with the request, as a token would."""


class Wall(msgspec.Struct):
    """What a link shows. ``objects``: names by id, of those that the dashboard names and its company has."""

    name: str
    script: Any
    object_id: str | None
    objects: dict[str, str]
    now_us: int
    zone: str


class WallValues(msgspec.Struct):
    """Variables that the dashboard shows with their newest values, by object's id."""

    objects: dict[str, list[ObjectVariable]]


class GetWallPicture(msgspec.Struct, kw_only=True):
    """A picture on which widgets of the dashboard stand."""

    uid: FileUid


class WallPicture(msgspec.Struct):
    """``data``: base64; ``type``: the media type."""

    type: str
    data: str


class _Shown(NamedTuple):
    """A link's dashboard, on whose company's behalf it is read, and what it shows."""

    link: WallLink
    dashboard: Row
    actor: Actor
    codes: dict[int, frozenset[str]]


async def handle_renew_wall_link(services: Services, actor: Actor, request: RenewWallLink) -> WallLinkCreated:
    """Makes a link; the one before it ends."""
    dashboard = await services.entities.dashboards.item(actor, request.uid)
    of_company = _on_behalf(dashboard)
    object_id = None if request.object_id is None else await find_object(services, of_company, request.object_id)
    link, key = await services.wall_links.make(actor, dashboard, object_id)
    shown = msgspec.structs.asdict(_record(services, dashboard, link))
    return WallLinkCreated(**shown, key=key)


async def handle_get_wall_link(services: Services, actor: Actor, request: LinkOfDashboard) -> WallLinkFound:
    """The dashboard's link, if it has one."""
    dashboard = await services.entities.dashboards.item(actor, request.uid)
    link = await services.wall_links.of(dashboard["id"])
    return WallLinkFound(None if link is None else _record(services, dashboard, link))


async def handle_end_wall_link(services: Services, actor: Actor, request: LinkOfDashboard) -> WallLinkEnded:
    """Ends the dashboard's link: what it showed is shown no more from the next request on."""
    dashboard = await services.entities.dashboards.item(actor, request.uid)
    return WallLinkEnded(await services.wall_links.end(actor, dashboard))


async def handle_get_wall(services: Services, caller: Caller, request: GetWall) -> Wall:
    """The dashboard of the caller's link."""
    link, dashboard, actor, codes = await _shown(services, caller)
    names = {}
    for object_id in codes:
        try:
            names[str(object_id)] = (await services.entities.objects.item(actor, object_id))["name"]
        except NotFound:
            continue
    return Wall(
        name=dashboard["name"],
        script=dashboard["script"],
        object_id=None if link.object_id is None else str(link.object_id),
        objects=names,
        now_us=now_us(),
        zone=str(services.zone),
    )


async def handle_get_wall_values(services: Services, caller: Caller, request: GetWall) -> WallValues:
    """The newest values of what the dashboard of the caller's link shows."""
    shown = await _shown(services, caller)
    found = {}
    for object_id, codes in shown.codes.items():
        try:
            variables = await handle_get_object_variable_list(
                services, shown.actor, VariablesOfObject(object_id=object_id)
            )
        except NotFound:
            continue
        found[str(object_id)] = [each for each in variables if each.code in codes]
    return WallValues(found)


async def handle_get_wall_chart(services: Services, caller: Caller, request: MosaicChart) -> Chart:
    """Curves of variables that the dashboard of the caller's link shows, and that ``keys`` names; ``*``: all of these.

    Raises:
        NotPermitted: it does not show one of them.
    """
    shown = await _shown(services, caller)
    object_id = await find_object(services, shown.actor, request.object_id)
    codes = shown.codes.get(object_id, frozenset())
    if not codes or not codes.issuperset(request.keys.names):
        raise NotPermitted(say("link_shows_no_such_keys"))
    named = request.keys if request.keys.names else Keys(tuple(sorted(codes)))  # not all that the object has
    return await handle_get_mosaic_chart(services, shown.actor, msgspec.structs.replace(request, keys=named))


async def handle_get_wall_picture(services: Services, caller: Caller, request: GetWallPicture) -> WallPicture:
    """A picture on which widgets of the dashboard of the caller's link stand.

    Raises:
        NotPermitted: it is not on it.
        BadParameter: it is no picture, or too large to be shown this way.
    """
    shown = await _shown(services, caller)
    if request.uid not in read_dashboard_pictures(shown.dashboard["script"]):
        raise NotPermitted(say("link_shows_no_such_file"))
    stored = await services.files.open_for(shown.actor, request.uid)
    if not stored.media_type.startswith("image/") or stored.size > MOST_PICTURE:
        raise BadParameter("uid", say("no_picture", most_mib=MOST_PICTURE >> 20))
    with services.memory.holding("pages", shown.actor.company_id) as holding:
        holding.grow(3 * stored.size)
        body = await asyncio.to_thread(stored.path.read_bytes)
        return WallPicture(stored.media_type, base64.b64encode(body).decode())


async def _shown(services: Services, caller: Caller) -> _Shown:
    """What a caller's link reaches now. One that reaches nothing is counted and logged, its key is not.

    Raises as ``_reached``.
    """
    try:
        return await _reached(services, caller)
    except NotAuthenticated as error:
        services.wall_links.stats.refused += 1
        _log.warning("a wall's link from %s was refused: %s", caller.address, error)
        raise


async def _reached(services: Services, caller: Caller) -> _Shown:
    """What a caller's link reaches now.

    Raises:
        NotAuthenticated: the key is nobody's, was ended, its dashboard is gone, or its company closed.
    """
    link = await services.wall_links.verify(caller.token)
    try:
        dashboard = await services.entities.dashboards.item(SYSTEM, link.dashboard_id)
    except NotFound:
        raise NotAuthenticated(say("link_dashboard_deleted")) from None
    actor = _on_behalf(dashboard)
    if not services.registry.is_company_available(actor.company_id):  # whoever made the link
        raise NotAuthenticated(say("link_company_closed"))
    services.memory.check("requests", actor.company_id)
    return _Shown(link, dashboard, actor, read_dashboard_values(dashboard["script"], link.object_id))


def _on_behalf(dashboard: Row) -> Actor:
    """A viewer of the dashboard's company, nobody's user."""
    return Actor(user_id=0, username="wall", company_id=dashboard["permission_company_id"], role=Role.VIEWER)


def _record(services: Services, dashboard: Row, link: WallLink) -> WallLinkRecord:
    return WallLinkRecord(
        uid=dashboard["uid"],
        object_id=None if link.object_id is None else str(link.object_id),
        prefix=link.prefix,
        created_by=link.made_by,
        created=format_spaced(link.made_us, services.zone),
    )


OPERATIONS = (
    Operation(
        name="renew_wall_link",
        summary="A link that shows one dashboard and nothing else; its key is shown this once, the link before it ends",
        request=RenewWallLink,
        result=WallLinkCreated,
        permission=Role.ADMIN,
        handler=handle_renew_wall_link,
    ),
    Operation(
        name="get_wall_link",
        summary="A dashboard's link, without its key",
        request=LinkOfDashboard,
        result=WallLinkFound,
        permission=Role.ADMIN,
        handler=handle_get_wall_link,
    ),
    Operation(
        name="end_wall_link",
        summary="Ends a dashboard's link",
        request=LinkOfDashboard,
        result=WallLinkEnded,
        permission=Role.ADMIN,
        handler=handle_end_wall_link,
    ),
    Operation(
        name="get_wall",
        summary="The dashboard of a link, whose key comes in place of a token",
        request=GetWall,
        result=Wall,
        permission=None,
        handler=handle_get_wall,
    ),
    Operation(
        name="get_wall_values",
        summary="The newest values of what the dashboard of a link shows",
        request=GetWall,
        result=WallValues,
        permission=None,
        handler=handle_get_wall_values,
    ),
    Operation(
        name="get_wall_chart",
        summary="Curves of what the dashboard of a link shows",
        request=MosaicChart,
        result=Chart,
        permission=None,
        handler=handle_get_wall_chart,
    ),
    Operation(
        name="get_wall_picture",
        summary="A picture on which widgets of the dashboard of a link stand",
        request=GetWallPicture,
        result=WallPicture,
        permission=None,
        handler=handle_get_wall_picture,
    ),
)
