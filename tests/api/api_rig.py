"""A platform in this process, users of two companies, and an HTTP client to its gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp

from migrated import first_start, hash_of, seed
from own_platform import PASSWORD, ListenAddresses, Platform, Ports, own_platform
from terrazzo.api.kernel.services import Services
from terrazzo.config.limits import LimitsSection
from terrazzo.domain.actor import SYSTEM
from terrazzo.metadata.entities import Entities
from terrazzo.terminals.presence import PresenceRegister

__all__ = ["BODY_BYTES", "PASSWORD", "Limits", "Rig", "config_fields", "open_rig", "terminal_fields"]

BODY_BYTES = LimitsSection().body_bytes
Limits = LimitsSection
_FILE_BYTES = 4 * BODY_BYTES  # so that a test can be above it


@dataclass(frozen=True)
class Rig:
    """A running platform, a client, and what stands behind."""

    platform: Platform
    addresses: ListenAddresses
    http: aiohttp.ClientSession
    tokens: Mapping[str, str]  # root, admin, operator, viewer; stranger is another company's admin

    @property
    def services(self) -> Services:
        """What the gateway's operations work on."""
        return self.platform.gateway.services

    @property
    def presence(self) -> PresenceRegister:
        """Who is connected."""
        return self.platform.messaging.presence

    async def post(self, body: bytes, *, token: str | None = None, **headers: str) -> tuple[int, Any]:
        """Status and decoded answer of a gateway request."""
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        async with self.http.post("/apiproxy/api", data=BytesIO(body), headers=sent) as response:
            return response.status, json.loads(await response.read())

    async def ask(self, action: str, who: str = "admin", **fields: Any) -> dict[str, Any]:
        """The envelope of an action, as one of the users."""
        token = self.tokens.get(who)
        status, answer = await self.post(json.dumps({"action": action, **fields}).encode(), token=token)
        assert status == 200, answer
        return dict(answer)

    async def call(self, action: str, who: str = "admin", **fields: Any) -> Any:
        """The result of an action that must succeed."""
        answer = await self.ask(action, who, **fields)
        assert answer["code"] == 200, answer
        return answer["result"]

    async def get(self, path: str, who: str = "admin", **query: str) -> tuple[int, Any]:
        """Status and decoded answer of a component path."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who in self.tokens else {}
        async with self.http.get(path, params=query, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def add_config(self, who: str = "admin", **fields: Any) -> str:
        """A configuration's uid."""
        return str((await self.call("create_terminal_config", who, **(config_fields() | fields)))["uid"])

    async def add_terminal(self, uid: str, who: str = "admin", **fields: Any) -> int:
        """A terminal's id; its configuration is made too unless given."""
        config = fields.pop("config_id", None) or await self.add_config(who)
        created = await self.call("create_terminal", who, **(terminal_fields(uid, config) | fields))
        return int(created["id"])


def config_fields() -> dict[str, Any]:
    return {"name": "standard", "created_by": 1, "last_modified_by": 1, "is_available": 1}


def terminal_fields(uid: str, config_uid: str) -> dict[str, Any]:
    return {
        "uid": uid,
        "name": f"Terminal {uid}",
        "type": "Adapter-II",
        "config_id": config_uid,
        "mode": "pwd",
        "username": f"u-{uid}"[:32],
        "pin": f"p-{uid}"[:16],
        "access": "all",
        "created_by": 1,
        "last_modified_by": 1,
        "is_available": 1,
    }


@asynccontextmanager
async def open_rig(
    folder: Path,
    *,
    ports: Ports | None = None,
    limits: Mapping[str, Any] | None = None,
    tokens: Mapping[str, str] | None = None,
    **sections: Mapping[str, Any],
) -> AsyncIterator[Rig]:
    """Everything started, and two companies with their users; ``limits`` and other sections of the configuration.

    ``tokens``: of the users, where the folder has them already.
    """
    if "admin" not in sections and not tokens:
        seed(folder, _with_users)
    given = {"import_bytes": _FILE_BYTES, "file_bytes": _FILE_BYTES, **(limits or {})}
    async with own_platform(folder, ports=ports, limits=given, **sections) as (platform, addresses):
        # a connection of its own for each request: tests count those that they open
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(addresses.http, connector=connector) as http:
            yield Rig(platform, addresses, http, dict(tokens) if tokens else await _tokens(platform))


async def _with_users(entities: Entities) -> None:
    """A first start's records, and users of each role in two companies."""
    await first_start(entities)
    other = await entities.companies.create(SYSTEM, {"name": "other"})
    hashed = hash_of(PASSWORD)
    for name, role, company in [
        ("admin", "admin", 1),
        ("operator", "operator", 1),
        ("viewer", "viewer", 1),
        ("stranger", "admin", other["id"]),
    ]:
        values = {"username": f"{name}-user", "role": role, "permission_company_id": company}
        await entities.users.create_hashed(SYSTEM, values, hashed)


async def _tokens(platform: Platform) -> dict[str, str]:
    """Tokens by who it is."""
    users, tokens = platform.metadata.entities.users, platform.metadata.tokens
    known = {row["username"]: row async for row in users.every()}
    if "admin-user" not in known:  # the records are not in the folder
        await _with_users(platform.metadata.entities)
        known = {row["username"]: row async for row in users.every()}
    names = {"root": "admin"} | {name: f"{name}-user" for name in ("admin", "operator", "viewer", "stranger")}
    return {name: tokens.issue_for(known[username]) for name, username in names.items() if username in known}
