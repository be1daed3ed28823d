"""Records with all kinds of secrets, and whether they can be read."""

from __future__ import annotations

import sqlalchemy as sa

from metadata.registry_stand import Stand
from terrazzo.access.key_rotation import SEALED as SEALED_ENTITIES
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.field import FieldKind
from terrazzo.database.tables.access import SECOND_FACTOR

URL = "https://hooks.example.com/secret"
CLEAR = {"terminal.pin": "pin-of-it", "rule.url": URL, "rule.secret": "0123456789abcdef", "customer.secret": "code"}
CLEAR |= {"second_factor.secret": "GEZDGNBVGY3TQOJQ", "second_factor.pending": "MFRGGZDFMZTWQ2LK"}
HOOK = {"kinds": ["event"], "channel": "webhook", "url": URL, "secret": "0123456789abcdef"}
SEALED = {f"{e.name}.{f.name}" for e in SEALED_ENTITIES for f in e.fields.values() if f.kind is FieldKind.SECRET}


async def fill(stand: Stand) -> None:
    """Five terminals and whatever else has a secret."""
    for number in range(5):
        await stand.terminal(f"t{number}")
    await stand.entities.rules.create(stand.first, {"name": "hook", **HOOK})
    await stand.entities.customers.create(stand.second, {"name": "c", "secret": "code"})
    seal = stand.entities.users.secrets.seal
    sealed = {name: seal(CLEAR[f"second_factor.{name}"], f"second_factor.{name}") for name in ("secret", "pending")}
    async with stand.database.writing() as connection:
        await connection.execute(SECOND_FACTOR.insert().values(user_id=1, step=0, recovery="[]", **sealed))


async def stored(database: Database) -> dict[tuple[str, int], str]:
    """All sealed texts by column and id."""
    found = {}
    async with database.reading() as connection:
        for place in SEALED:
            entity, _, column = place.partition(".")
            table = next(each.table for each in SEALED_ENTITIES if each.name == entity)
            for row in await connection.execute(sa.select(table.c.id, table.c[column])):
                if row[1]:
                    found[place, row[0]] = row[1]
    return found


async def check_readable(database: Database, secrets: Secrets) -> None:
    """By whoever opens the folder now."""
    for (place, _), text in (await stored(database)).items():
        assert secrets.unseal(text, place) == CLEAR[place]
