"""Whether the target opens what is sealed in the registry."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.backup.migration.marker import Unmovable
from terrazzo.config.sections import Config
from terrazzo.crypto.key_file import read_key
from terrazzo.crypto.secrets import KEY_BYTES, KEY_FILE, Secrets, SecretUnreadable, is_sealed
from terrazzo.database.database import Database
from terrazzo.database.entity import Entity
from terrazzo.database.field import FieldKind
from terrazzo.database.tables.access import SEALED_FACTOR
from terrazzo.metadata.definitions.registry import ENTITIES

_AT_ONCE = 500  # rows


def check_keys(source: Config, target: Config) -> None:
    """Checks that the target will have the source's keys: those in files are copied, those of a configuration are not.

    Raises:
        Unmovable: it won't; names the key.
    """
    given, wanted = target.database, source.database
    if wanted.secrets_key and given.secrets_key.lower() != wanted.secrets_key.lower():
        advice = "set it to the source's, which has sealed what is to be moved; it may be rotated afterwards"
        raise Unmovable(f"database.secrets_key of the target: {advice}")
    if not wanted.secrets_key and given.secrets_key and given.secrets_key.lower() != _key_in_file(source):
        advice = (
            "set it to what is in the source's file secrets-key, or leave it out, as the file is moved along;"
            " rotate it afterwards"
        )
        raise Unmovable(f"database.secrets_key of the target: {advice}")


def _key_in_file(source: Config) -> str:
    """The key that is a file of the source's folder; empty where there is none."""
    found = read_key(source.data_dir / KEY_FILE, size=KEY_BYTES)
    return "" if found is None else found.hex()


async def count_unreadable(database: Database, config: Config) -> int:
    """How many sealed values of a registry no key of a configuration opens."""
    section = config.database
    secrets = Secrets.open(config.data_dir, key=section.secrets_key, old_key=section.secrets_key_old)
    return sum([await _unreadable_of(database, secrets, entity) for entity in (*ENTITIES, SEALED_FACTOR)])


async def _unreadable_of(database: Database, secrets: Secrets, entity: Entity) -> int:
    names = [each.name for each in entity.fields.values() if each.kind is FieldKind.SECRET]
    if not names:
        return 0
    table, count, last = entity.table, 0, 0
    query = sa.select(table.c.id, *(table.c[name] for name in names)).order_by(table.c.id).limit(_AT_ONCE)
    async with database.reading() as connection:
        while rows := (await connection.execute(query.where(table.c.id > last))).mappings().all():
            last = rows[-1]["id"]
            count += sum(not _opens(secrets, row[name], f"{entity.name}.{name}") for row in rows for name in names)
    return count


def _opens(secrets: Secrets, stored: str | None, place: str) -> bool:
    if not stored or not is_sealed(stored):
        return True
    try:
        secrets.unseal(stored, place)
    except SecretUnreadable:
        return False
    return True
