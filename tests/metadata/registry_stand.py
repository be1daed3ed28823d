"""A registry to test against: two companies with an administrator and a configuration each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrated import hash_of
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.metadata.entities import Entities

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)


@dataclass
class Stand:
    """A database with two companies, an administrator in each, and a configuration in each."""

    database: Database
    registry: Registry
    entities: Entities
    first: Actor
    second: Actor
    config: str  # uid of the first company's configuration
    other_config: str  # of the second's

    async def terminal(self, uid: str, actor: Actor | None = None, /, **values: Any) -> Any:
        """Creates a terminal."""
        actor = actor or self.first
        config = self.config if actor.company_id == self.first.company_id else self.other_config
        return await self.entities.terminals.create(actor, terminal_values(uid, config_id=config) | values)


def terminal_values(uid: str, **values: Any) -> dict[str, Any]:
    """What a terminal needs."""
    return {
        "uid": uid,
        "name": f"Terminal {uid}"[:64],
        "type": "Adapter-II",
        "mode": "pwd",
        "username": f"u-{uid}"[:32],
        "pin": "pin-of-it",
        "access": "all",
    } | values


async def make_stand(database: Database, folder: Path) -> Stand:
    registry = Registry()
    entities = Entities.open(database, registry, Secrets.open(folder))
    actors, configs = [], []
    for name in ("one", "two"):
        company = await entities.companies.create(ROOT, {"name": name})
        values = {"username": f"admin-{name}", "role": "admin", "permission_company_id": company["id"]}
        user = await entities.users.create_hashed(ROOT, values, hash_of("a long password"))
        actor = Actor(user_id=user["id"], username=user["username"], company_id=company["id"], role=Role.ADMIN)
        config = await entities.configurations.create(actor, {"name": f"config of {name}"})
        actors.append(actor)
        configs.append(config["uid"])
    return Stand(database, registry, entities, *actors, *configs)
