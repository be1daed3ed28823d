"""Claim keys, with which terminals that nobody has registered come in by themselves."""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Key, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import EntityActions
from terrazzo.database.entity import COMPANY
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.claims.claim_key import hash_of
from terrazzo.metadata.definitions.registry import CLAIM_KEY, MAX_USES

_PREFIX = "ck-"
_KEY_BYTES = 16


class CreateClaimKey(msgspec.Struct, kw_only=True):
    """A new claim key, and what terminals are that come in by it.

    ``uses``: how many may; ``prefix``: of their uids; without ``config_id`` they have the configuration ``default``.
    """

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    description: Annotated[str, Meta(max_length=255)] = ""
    uses: Annotated[int, Meta(ge=1, le=MAX_USES)] = 1
    expires: Moment | None = None
    prefix: Annotated[str, Meta(max_length=64)] = ""
    config_id: Key | None = None
    type: Annotated[str, Meta(max_length=16)] = "Other"
    mode: Annotated[str, Meta(max_length=16, description="pwd or auto or cert")] = "pwd"
    access: Annotated[str, Meta(max_length=16, description="all or pub or sub")] = "all"
    topic: Annotated[str, Meta(max_length=64)] = "all"
    permission_company_id: Key | None = None


class CreatedClaimKey(msgspec.Struct):
    """The key, which nobody can be told again."""

    id: int
    uid: str
    key: str


async def handle_create_claim_key(services: Services, actor: Actor, request: CreateClaimKey) -> CreatedClaimKey:
    """Makes a key up; its hash is kept."""
    names = ("name", "description", "uses", "prefix", "type", "mode", "access", "topic")
    values = {name: getattr(request, name) for name in names}
    values["expires"] = None if request.expires is None else request.expires.time_us
    company = request.permission_company_id
    if company is not None:
        values[COMPANY] = company
    config = request.config_id
    values["config_id"] = (
        await services.registration.default_configuration(actor, company) if config is None else config
    )
    key = _PREFIX + secrets.token_hex(_KEY_BYTES)
    row = await services.claim_keys.create_hashed(actor, values, hash_of(key.encode()))
    return CreatedClaimKey(row["id"], row["uid"], key)


_ACTIONS = EntityActions(
    title="claim key",
    name="claim_key",
    create="create_claim_key",
    update="update_claim_key",
    delete="delete_claim_key",
    get_item="get_claim_key_item",
    get_list="get_claim_key_list",
    entity=CLAIM_KEY,
    repository=lambda services: services.claim_keys,
    readers=Role.ADMIN,
)

OPERATIONS = (
    Operation(
        name=_ACTIONS.create,
        summary="Creates a claim key, by which terminals come in; the key is in this answer only",
        request=CreateClaimKey,
        result=CreatedClaimKey,
        permission=Role.ADMIN,
        handler=handle_create_claim_key,
    ),
    *(each for each in _ACTIONS.operations() if each.name in (_ACTIONS.get_list, _ACTIONS.delete)),
)
