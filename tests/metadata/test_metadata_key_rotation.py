"""The key of stored secrets is replaced: all is sealed anew, and wherever it is cut off nothing is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from registry_stand import Stand, make_stand
from sealed_stand import HOOK, SEALED, URL, check_readable, fill, stored

from terrazzo.access.key_rotation import rotate_secrets_key
from terrazzo.crypto.key_file import read_key
from terrazzo.crypto.secrets import KEY_BYTES, KEY_FILE, OLD_KEY_FILE, Secrets
from terrazzo.database.database import Database
from terrazzo.database.migrations import REVISIONS
from terrazzo.domain.registry import Registry
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.sealed_columns import reseal, seal_clear

STEPS = ("copied", "replaced", "walk", "removed")


class Cut(BaseException):
    """The process ends here."""


def key_in(folder: Path) -> bytes | None:
    return read_key(folder / KEY_FILE, size=KEY_BYTES)


def test_these_columns_are_sealed() -> None:
    names = {"terminal.pin", "terminal.rsa_privatekey", "customer.secret", "object.secret", "rule.secret", "rule.url"}
    names |= {"second_factor.secret", "second_factor.pending"}
    assert names == SEALED


async def test_all_is_sealed_anew(stand: Stand, tmp_path: Path) -> None:
    await fill(stand)
    before, key = await stored(stand.database), key_in(tmp_path)
    told = await rotate_secrets_key(stand.database, tmp_path, settle_s=0)
    after = await stored(stand.database)
    assert (told.count, told.unreadable_count, len(before)) == (10, 0, 10)
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert not (tmp_path / OLD_KEY_FILE).exists()
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert key_in(tmp_path) != key
    await check_readable(stand.database, Secrets(key_in(tmp_path) or b""))
    await stand.terminal("later")  # by repositories that were there before: they see that the key is another
    await check_readable(stand.database, Secrets(key_in(tmp_path) or b""))
    row = await stand.entities.terminals.item(stand.first, "later")
    assert row["pin"] == "pin-of-it"


async def test_cut_off_in_the_walk(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(stand)
    sealed = 0
    seal = Secrets.seal

    def seal_or_end(self: Secrets, text: str, place: str) -> str:
        nonlocal sealed
        sealed += 1
        if sealed == 4:
            raise Cut
        return seal(self, text, place)

    async def one_by_one(*arguments: Any) -> Any:
        return await reseal(*arguments, at_once=1)

    with monkeypatch.context() as patched:
        patched.setattr("terrazzo.access.key_rotation.reseal", one_by_one)
        patched.setattr(Secrets, "seal", seal_or_end)
        with pytest.raises(Cut):
            await rotate_secrets_key(stand.database, tmp_path, settle_s=0)
    both = Secrets.open(tmp_path)
    assert both.is_replacing
    newest = [both.is_newest(text, place) for (place, _), text in (await stored(stand.database)).items()]
    assert newest.count(True) == 3
    await check_readable(stand.database, both)
    middle = key_in(tmp_path)
    told = await rotate_secrets_key(stand.database, tmp_path, settle_s=0)
    assert (told.count, key_in(tmp_path)) == (7, middle), "what was begun is finished"
    await check_readable(stand.database, Secrets(middle or b""))


@pytest.mark.parametrize("step", STEPS)
async def test_cut_off_between_two_steps(stand: Stand, tmp_path: Path, step: str) -> None:
    def on_step(name: str) -> None:
        if name == step:
            raise Cut

    await fill(stand)
    first = key_in(tmp_path)
    with pytest.raises(Cut):
        await rotate_secrets_key(stand.database, tmp_path, settle_s=0, on_step=on_step)
    await check_readable(stand.database, Secrets.open(tmp_path))
    await stand.terminal("meanwhile")
    await rotate_secrets_key(stand.database, tmp_path, settle_s=0)
    assert key_in(tmp_path) != first
    assert not (tmp_path / OLD_KEY_FILE).exists()
    await check_readable(stand.database, Secrets(key_in(tmp_path) or b""))


async def test_a_secret_that_no_key_opens_keeps_the_old_key(stand: Stand, tmp_path: Path) -> None:
    await fill(stand)
    foreign = Secrets(b"x" * KEY_BYTES).seal("other", "terminal.pin")
    async with stand.database.writing() as connection:
        await connection.execute(TERMINAL.table.update().where(TERMINAL.table.c.uid == "t1").values(pin=foreign))
    told = await rotate_secrets_key(stand.database, tmp_path, settle_s=0)
    assert (told.unreadable, told.unreadable_count) == (["terminal t1: pin"], 1)
    assert (tmp_path / OLD_KEY_FILE).exists()
    assert foreign in (await stored(stand.database)).values()


async def test_what_somebody_writes_during_the_walk_stays(stand: Stand, tmp_path: Path) -> None:
    """A row is written only while it has the value that was read."""
    await fill(stand)
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    sa.event.listen(stand.database.engine.sync_engine, "before_cursor_execute", note)
    await rotate_secrets_key(stand.database, tmp_path, settle_s=0)
    updates = [each for each in statements if each.startswith("UPDATE terminal ")]
    assert len(updates) == 5
    assert all("pin =" in each.partition("WHERE")[2] for each in updates)


def test_a_key_that_is_gone_is_not_made_anew_by_who_has_it_in_memory(tmp_path: Path) -> None:
    secrets = Secrets.open(tmp_path)
    sealed = secrets.seal("pin", "p")
    (tmp_path / KEY_FILE).unlink()
    assert secrets.unseal(secrets.seal("more", "p"), "p") == "more"
    assert secrets.unseal(sealed, "p") == "pin"
    assert not (tmp_path / KEY_FILE).exists()


LATER_TABLES = (
    "terminal_configuration",
    "company_usage",
    "former_terminal",
    "api_key",
    "password_reset",
    "second_factor",
    "terminal_tag",
    "claim_key",
    "rule_condition",
    "rule_command",
    "heartbeat",
    "terminal_authority",
    "presence_day",
    "wall_link",
    "handover",
    "out_of_service",
    "unfinished_import",
    "record_log",
)
LATER_INDEXES = (
    *(
        f"ix_terminal_{owner}{column}_id"
        for column in ("config_id", "tags", "type")
        for owner in ("", "permission_company_id_")
    ),
    *(f"ix_object_{owner}{place}_id" for place in ("province", "city") for owner in ("", "permission_company_id_")),
    "ix_audit_batch",
    "ix_event_company_id_severity_id",
    *(f"ix_event_{owner}{done}_id" for done in ("acknowledged_at", "cleared_at") for owner in ("", "company_id_")),
    "ix_event_raised",
    "ix_event_raised_of_all",
    "ix_object_with_objects",
    "ix_object_permission_company_id_serial_no_id",
    "ix_object_serial_no_id",
    "ix_message_queued",
    "ix_label_open",
    "ix_label_open_of_all",
    "ix_label_object_id_opened_at_id",
    "ix_command_company_id_state_expires_us",
    "ix_command_object_id_queued_us_id",
    "ix_event_object_id_code_state",
    "ix_event_clear_at_id",
    "ix_user_sso_hash",
    "ix_service_object_id_service_at_id",
    "ix_collectos_object_id_collect_at_id",
)
LATER_COLUMNS = (
    ("terminal", "series"),
    ("terminal", "tags"),
    ("terminal", "claim_key_id"),
    ("audit", "batch"),
    ("user", "has_second_factor"),
    ("user", "by_sso"),
    ("user", "sso_hash"),
    ("company", "needs_second_factor"),
    ("configuration", "deliver"),
    ("configuration", "payload"),
    *(("mapping", name) for name in ("events", "variables")),
    *(("event", name) for name in ("severity", "cleared_cause", "clear_at", "shelved_until", "shelved_by")),
    ("rule", "severity"),
    *(("company", f"limit_{kind}") for kind in ("records", "record_bytes", "files", "file_bytes")),
    *(("company", f"limit_{kind}") for kind in ("events", "event_bytes", "publish_per_second")),
    *(("company", f"limit_{kind}") for kind in ("api_keys", "authorities", "rules", "rule_conditions")),
    *(("company", f"limit_{kind}") for kind in ("rule_commands_per_hour", "queued_messages", "queued_bytes")),
    *(
        ("company", f"limit_{kind}")
        for kind in ("subscriptions", "retained_messages", "retained_bytes", "answer_bytes", "series_mib")
    ),
    *(("company", f"retention_{kind}") for kind in ("events", "labels", "commands", "messages", "audit", "series")),
    *(("rule", name) for name in ("terminal_list", "tags", "group_list", "minutes", "back_minutes", "digest")),
    ("rule", "digest_at"),
    *(("rule", name) for name in ("command", "command_value", "command_objects", "command_expiry_s")),
    *(("rule", name) for name in ("commands_per_hour", "loop_s", "schedule")),
    ("rule_notice", "noted_us"),
    ("command", "rule_id"),
)
"""What revisions since 0013 have added."""


async def test_rules_of_an_older_revision_keep_their_ids_and_are_sealed(tmp_path: Path) -> None:
    """SQLite remakes the table; ids that were used once are not used again."""
    database = await Database.open("", data_dir=tmp_path)
    stand = await make_stand(database, tmp_path)
    await fill(stand)
    await stand.entities.rules.create(stand.first, {"name": "gone", **HOOK})
    await stand.entities.rules.delete(stand.first, 2)
    await database.close()
    with closing(sqlite3.connect(tmp_path / "terrazzo.db")) as older:
        older.execute("UPDATE rule SET url = ?", (URL,))
        for table in LATER_TABLES:
            older.execute(f"DROP TABLE {table}")
        for index in LATER_INDEXES:
            older.execute(f"DROP INDEX {index}")
        for table, column in LATER_COLUMNS:
            older.execute(f'ALTER TABLE "{table}" DROP COLUMN {column}')
        older.execute("UPDATE alembic_version SET version_num = ?", (REVISIONS[REVISIONS.index("0013") - 1],))
        older.commit()
    database = await Database.open("", data_dir=tmp_path)
    secrets = Secrets.open(tmp_path)
    assert await seal_clear(database, secrets, RULE) == 1
    assert await seal_clear(database, secrets, RULE) == 0
    rules = Entities.open(database, Registry(), secrets).rules
    assert await rules.webhook(1) == (URL, HOOK["secret"])
    assert (await rules.create(stand.first, {"name": "next", **HOOK}))["id"] == 3
    await database.close()
