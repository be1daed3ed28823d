"""A company full of marked records, and a request for every operation and path, derived from the table.

Text that starts with ``@`` stands for something of this world: ``@mark`` the mark, ``@terminal`` the uid of the
terminal, ``@spare.terminal`` of the one to delete, ``@key`` of the record that the action's name says, ``@id`` its id.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
import sqlalchemy as sa
from api_rig import Rig

from client_certificates import ClientCa
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.operations.table import TABLE
from terrazzo.database.entity import METADATA
from terrazzo.domain.actor import SYSTEM

MARK = "HOMEMARK"  # in what the home company's records say
THEIR_MARK = "AWAYMARK"
UNCOUNTED = {
    "change",
    "audit",
    "revoked_token",
    "company_usage",
    "heartbeat",
}  # they may change though no record of the home company does
_VERBS = ("create", "update", "delete", "get", "start", "stop", "pause", "resume", "close", "check", "import", "unlock")


class NeedsAnEntry(Exception):
    """The derivation doesn't know what to send."""


@dataclass(frozen=True)
class Special:
    """What the derivation can't know of one operation or path; see ``test_api_scope``."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    code: int = 200
    stranger: int = 0
    unmarked: str = ""
    roles: Mapping[str, int] = field(default_factory=dict)


@dataclass
class World:
    """The home company's records: uids by the entity's name in actions."""

    fields: Mapping[str, Any]
    mark: str = MARK
    main: dict[str, str] = field(default_factory=dict)
    spare: dict[str, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    numbers: Iterable[int] = field(default_factory=itertools.count)

    def as_stranger(self) -> World:
        """The same records, in requests of somebody whose own texts are marked otherwise."""
        return World(self.fields, THEIR_MARK, self.main, self.spare, self.ids, self.numbers)

    def request(self, operation: Operation, special: Special) -> dict[str, Any]:
        """The fields of a request: required ones, and optional ones that have a value in the tables.

        Raises:
            NeedsAnEntry: names the field.
        """
        made: dict[str, Any] = {}
        for each in msgspec.structs.fields(operation.request):
            name = each.encode_name
            known = special.fields.get(name, self.fields.get(name))
            try:
                if known is None:
                    raise NeedsAnEntry(f"{operation.name}: no value for the field {name}")
                made[name] = self._filled(known, operation.name)
            except NeedsAnEntry:
                if each.required:
                    raise
        return made

    def keys_in(self, request: Any) -> set[str]:
        """The records that a request names."""
        return {value for value in _texts(request) if value in {*self.main.values(), *self.spare.values()}}

    def leaks(self, answer: str, request: Any) -> list[str]:
        """What an answer says of the home company that the request didn't."""
        sent = self.keys_in(request)
        return [
            mark for mark in (MARK, *self.main.values(), *self.spare.values()) if mark in answer and mark not in sent
        ]

    def _filled(self, value: Any, action: str) -> Any:
        if isinstance(value, list):
            return [self._filled(each, action) for each in value]
        if isinstance(value, dict):
            return {name: self._filled(each, action) for name, each in value.items()}
        if not isinstance(value, str) or "@" not in value:
            return value
        if value == "@key":
            return self._key(action)
        if value == "@id":
            return self.ids[self._key(action)]
        if value == "@certificate":
            return ClientCa(f"{self.mark} {next(iter(self.numbers))}").pem
        value = value.replace("@mark", self.mark).replace("@new", str(next(iter(self.numbers))))
        if not value.startswith("@"):
            return value
        kind, _, entity = value[1:].rpartition(".")
        if kind == "number":
            return int(self.main[entity])
        found = (self.spare if kind == "spare" else self.main).get(entity)
        if found is None:
            raise NeedsAnEntry(f"{action}: the world has no {entity}")
        return found

    def _key(self, action: str) -> str:
        verb, _, rest = action.partition("_")
        entity = rest.removesuffix("_item").removesuffix("_list") if verb == "get" else rest
        if verb == "create":
            return f"new-{entity}-{next(iter(self.numbers))}"
        found = (self.spare if verb == "delete" else self.main).get(entity)
        if verb not in _VERBS or found is None:
            raise NeedsAnEntry(f"{action}: its uid names no {entity} that the world has")
        return found


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int):
        yield str(value)


async def build_world(
    rig: Rig, *, fields: Mapping[str, Any], special: Mapping[str, Special], first: tuple[str, ...]
) -> World:
    """Two records of everything that can be created, the entities ``first`` in this order."""
    world = World(fields)
    async with rig.services.entities.terminals._database.writing() as connection:
        # an object's uid is its id: one that isn't found in every answer by chance
        await connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'object'"))
        await connection.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('object', 700000)"))
    for entity in _creatable(first):
        operation = TABLE[f"create_{entity}"]
        for records in (world.main, world.spare):
            request = world.request(operation, special.get(operation.name, Special()))
            created = await rig.call(operation.name, "root", **request)
            records[entity] = str(created["uid"])
            world.ids[records[entity]] = created["id"]
    company = await rig.services.entities.companies.update(SYSTEM, 1, {"name": MARK, "description": MARK})
    world.main["company"] = company["uid"]
    return world


def _creatable(first: tuple[str, ...]) -> list[str]:
    entities = [op.name.removeprefix("create_") for op in TABLE if op.name.startswith("create_")]
    return sorted(entities, key=lambda entity: first.index(entity) if entity in first else len(first))


async def rows_of(rig: Rig) -> dict[str, set[str]]:
    """Every row of every table as text, by table."""
    found: dict[str, set[str]] = {}
    async with rig.services.entities.terminals._database.reading() as connection:
        for table in METADATA.sorted_tables:
            if table.name not in UNCOUNTED:
                rows = (await connection.execute(sa.select(table))).mappings()
                found[table.name] = {json.dumps({**row}, default=str) for row in rows}
    return found


async def ask_path(rig: Rig, path: Operation, who: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope of a component path."""
    token = rig.tokens.get(who)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    sent: dict[str, Any] = {"params": _query(request)} if path.method == "GET" else {"json": request}
    async with rig.http.request(path.method, path.path, headers=headers, **sent) as response:
        assert response.status == 200, (path.path, await response.text())
        assert isinstance(response, aiohttp.ClientResponse)
        return dict(json.loads(await response.read()))


async def ask_socket(rig: Rig, who: str, action: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope of an action on a WebSocket of its own."""
    token = rig.tokens.get(who)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with rig.http.ws_connect("/apiproxy/api", headers=headers) as socket:
        await socket.send_str(json.dumps({"action": action, **request}))
        while True:
            answer = json.loads(await socket.receive_str(timeout=5))
            if answer["resp"] == action:
                return dict(answer)


def _query(request: Mapping[str, Any]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in request.items()}
