"""Replaces the key of tokens, and that of stored secrets with everything sealed anew.

The key of secrets goes through states that files tell apart, so that a rotation which was cut off goes on where it was:

1. ``secrets-key`` alone;
2. ``secrets-key.old``, a copy of it: nothing is replaced yet;
3. another ``secrets-key``: what is written from now on is sealed with it, what is read with either;
4. all is sealed with the new one: ``secrets-key.old`` goes, which is state 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from terrazzo.access.tokens import KEY_BYTES as TOKEN_BYTES
from terrazzo.access.tokens import KEY_FILE as TOKEN_FILE
from terrazzo.access.users import at_command_line
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import AuditLog
from terrazzo.crypto.key_file import new_key_text, read_key, replace_private, write_private
from terrazzo.crypto.secrets import KEY_BYTES, KEY_FILE, OLD_KEY_FILE, Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.access import SEALED_FACTOR
from terrazzo.metadata.definitions.registry import ENTITIES
from terrazzo.metadata.sealed_columns import Resealed, reseal

SecretsRotated = Resealed
SEALED = (*ENTITIES, SEALED_FACTOR)
"""What has columns of secrets."""

SETTLE_S = 5.0  # PostgreSQL: for transactions that sealed with the old key and have not locked their table yet


def rotate_token_key(data_dir: Path) -> Path:
    """Puts a new key into ``token-key``; the file's path. Platforms that run see it within a second.

    Raises:
        OSError: the file can't be written.
    """
    path = data_dir / TOKEN_FILE
    replace_private(path, new_key_text(TOKEN_BYTES))
    return path


async def rotate_secrets_key(
    database: Database,
    data_dir: Path,
    *,
    settle_s: float = SETTLE_S,
    on_step: Callable[[str], None] = lambda step: None,
) -> Resealed:
    """Replaces ``secrets-key``, or goes on with a replacement that was cut off, and seals everything anew.

    The old key stays where some secret can be opened with neither.

    Args:
        settle_s: how long the last look at a PostgreSQL database waits.
        on_step: called after each change of a file, with its name, and before the walk.

    Raises:
        ValueError, OSError: a key's file holds something else; it can't be read or written.
    """
    if _is_replaced(data_dir):
        on_step("resumed")
    else:
        _replace(data_dir, on_step)
    secrets = Secrets.open(data_dir)
    on_step("walk")
    told = await _reseal_all(database, secrets, settle_s)
    if told.unreadable_count == 0:
        await _note(database, KEY_FILE)
        (data_dir / OLD_KEY_FILE).unlink(missing_ok=True)
        on_step("removed")
    return told


async def reseal_configured(database: Database, data_dir: Path, key: str, old_key: str) -> Resealed:
    """Seals everything with the configuration's key that is sealed with its older one."""
    told = await _reseal_all(database, Secrets.open(data_dir, key=key, old_key=old_key), SETTLE_S)
    await _note(database, "database.secrets_key")
    return told


def _is_replaced(data_dir: Path) -> bool:
    """Whether there is an older key beside another newer one: state 3."""
    old = read_key(data_dir / OLD_KEY_FILE, size=KEY_BYTES)
    return old is not None and old != read_key(data_dir / KEY_FILE, size=KEY_BYTES)


def _replace(data_dir: Path, on_step: Callable[[str], None]) -> None:
    path = data_dir / KEY_FILE
    current = read_key(path, size=KEY_BYTES)
    if current is None:
        raise ValueError(f"{path}: there is no key to replace; restore the file from a backup")
    write_private(data_dir / OLD_KEY_FILE, current.hex() + "\n")  # there already in state 2
    on_step("copied")
    replace_private(path, new_key_text(KEY_BYTES))
    on_step("replaced")


async def _reseal_all(database: Database, secrets: Secrets, settle_s: float) -> Resealed:
    """Walks until a walk finds nothing to do; on PostgreSQL the last one begins when earlier transactions are over."""
    told = await reseal(database, secrets, SEALED)
    if database.engine.dialect.name == "postgresql":
        await asyncio.sleep(settle_s)
    while (again := await reseal(database, secrets, SEALED)).count:
        told.count += again.count
    told.unreadable, told.unreadable_count = again.unreadable, again.unreadable_count
    return told


async def _note(database: Database, key: str) -> None:
    entry = AuditEntry(actor=at_command_line(), company_id=None, action="rotate", entity="key", uid=key)
    await AuditLog(database).note(entry)
