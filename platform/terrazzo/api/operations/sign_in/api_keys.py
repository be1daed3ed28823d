"""API keys: users make, list and delete their own; administrators see and delete those of their company."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.fields import Flag, Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.records import RecordView
from terrazzo.api.operations.entities.types import record_type
from terrazzo.domain.actor import Actor, Role
from terrazzo.metadata.definitions.access import API_KEY, ROLES
from terrazzo.times import format_spaced

_RECORD = record_type("api_key", "API key, without the key itself", API_KEY, {})
_view = RecordView(API_KEY, format_spaced)


class CreateApiKey(msgspec.Struct, kw_only=True):
    """A new API key of whoever asks, with a role no higher than theirs.

    ``days``: how long it is good. ``is_super``: it sees all companies; super users only, with the role ``admin``.
    """

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    role: Annotated[str, Meta(max_length=16, description=" or ".join(ROLES))] = "viewer"
    days: Annotated[int, Meta(ge=1, le=3_660, description="how long it is good")] = 365
    description: Annotated[str, Meta(max_length=255)] = ""
    is_super: Flag = 0


class ApiKeyCreated(msgspec.Struct):
    """The new key, which is shown this once; ``prefix`` is its beginning, by which lists name it."""

    id: int
    uid: str
    key: str
    prefix: str
    role: str
    expires: str


class DeleteApiKey(msgspec.Struct, kw_only=True):
    """The key to end."""

    uid: Key


class ApiKeyDeleted(msgspec.Struct):
    """The key that was ended."""

    uid: str


async def handle_create_api_key(services: Services, actor: Actor, request: CreateApiKey) -> ApiKeyCreated:
    """Makes a key."""
    values = {name: getattr(request, name) for name in ("name", "role", "description", "is_super")}
    row, key = await services.api_keys.create(actor, values, days=request.days)
    expires = format_spaced(row["expires"], services.zone)
    return ApiKeyCreated(row["id"], row["uid"], key, row["prefix"], row["role"], expires)


async def handle_get_api_key_list(services: Services, actor: Actor, request: ListRequest) -> Paged[Any]:
    """The actor's own keys, an administrator's company's, or all."""
    page = await services.entities.api_keys.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=conditions_of(request),
        order_by=request.order_by.by,
    )
    rows = [{**row, "last_used": services.api_keys.last_used_us(row)} for row in page.rows]
    return paged(request, _view.records(services.zone, actor, rows), page.total)


async def handle_delete_api_key(services: Services, actor: Actor, request: DeleteApiKey) -> ApiKeyDeleted:
    """Ends a key at once."""
    row = await services.entities.api_keys.delete(actor, request.uid)
    return ApiKeyDeleted(row["uid"])


OPERATIONS = (
    Operation(
        name="create_api_key",
        summary="Makes an API key, which goes wherever a token goes; it is shown in the answer and never again",
        request=CreateApiKey,
        result=ApiKeyCreated,
        permission=Role.VIEWER,
        handler=handle_create_api_key,
        changes=True,
    ),
    Operation(
        name="get_api_key_list",
        summary="One's own API keys; an administrator sees the company's",
        request=ListRequest,
        result=Paged[_RECORD],  # type: ignore[valid-type]
        permission=Role.VIEWER,
        handler=handle_get_api_key_list,
    ),
    Operation(
        name="delete_api_key",
        summary="Ends an API key of one's own; an administrator ends any of the company's",
        request=DeleteApiKey,
        result=ApiKeyDeleted,
        permission=Role.VIEWER,
        handler=handle_delete_api_key,
        changes=True,
    ),
)
