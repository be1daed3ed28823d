"""Users and companies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import EntityActions
from terrazzo.crypto.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from terrazzo.database.port import Row
from terrazzo.domain.actor import Role
from terrazzo.metadata.definitions.registry import COMPANY, USER


async def _with_uid(services: Services, request: Any, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    return [{"uid": row["username"]} for row in rows]


USERS = EntityActions(
    title="user",
    name="user",
    create="create_user",
    update="update_user",
    delete="delete_user",
    get_item="get_user_item",
    get_list="get_user_list",
    entity=USER,
    repository=lambda services: services.entities.users,
    keys=("uid", "username", "id"),
    written={"password": Annotated[str, Meta(min_length=MIN_CHARACTERS, max_length=MAX_CHARACTERS)]},
    readers=Role.ADMIN,
    more={"uid": str},
    extend=_with_uid,
)

COMPANIES = EntityActions(
    title="company",
    name="company",
    create="create_company",
    update="update_company",
    delete="delete_company",
    get_item="get_company_item",
    get_list="get_company_list",
    entity=COMPANY,
    repository=lambda services: services.entities.companies,
)

OPERATIONS = (*USERS.operations(), *COMPANIES.operations())
