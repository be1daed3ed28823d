"""``terrazzo backup`` and ``terrazzo restore``: copies of a platform, made while it runs, checked, and brought back."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from terrazzo.cli.options import ConfigOption, DataOption, JsonOption, read_config
from terrazzo.cli.shown import PRIVATE_UMASK, end_progress, print_json, say, show_progress
from terrazzo.config.sections import Config, ConfigError

if TYPE_CHECKING:
    from terrazzo.backup.key_sealing import KeySealer
    from terrazzo.backup.manifest import Manifest
    from terrazzo.ports.backup_target import BackupTarget

_FAILED = 1  # exit status: a backup is damaged
_STEP_S = 0.5  # between two looks at progress

IdOption = Annotated[str, typer.Option("--id", help="Which backup; the newest without.", show_default=False)]
WordsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[verify|list] [TARGET]",
        help="A folder, or s3://bucket/prefix; backup.target without. ./verify is a folder of that name.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo backup`` and ``terrazzo restore``."""
    app.command("backup")(backup)
    app.command("restore")(restore)


def backup(
    words: WordsArgument = None,
    backup_id: IdOption = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Back up a platform, running or not; verify: read a backup whole and open it; list: say which there are."""
    given = list(words or [])
    does = given.pop(0) if given and given[0] in ("verify", "list") else "make"
    if len(given) > 1:
        raise typer.BadParameter("expected one target", param_hint="TARGET")
    loaded = read_config(config, data)
    _set_umask()
    target = given[0] if given else loaded.backup.target
    if not target:
        raise ConfigError("backup: say where to: a folder or s3://bucket/prefix, here or as backup.target")
    with _worded():
        if does == "make":
            _make(loaded, target, as_json)
        elif does == "list":
            _list(loaded, target, as_json)
        else:
            _verify(loaded, target, backup_id, as_json)


def restore(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A folder, or s3://bucket/prefix.")],
    backup_id: IdOption = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Restore a backup into a data folder that is empty or not there."""
    from terrazzo.backup.restoring import restore_files

    loaded = read_config(config, data)
    _set_umask()
    with _worded():
        target, manifest = _find(loaded, source, backup_id)
        sealer = _sealer(loaded)
        if manifest.database == "postgresql" and not loaded.database.url:
            raise ConfigError("database.url: the backup is of a PostgreSQL database: name an empty one to restore into")
        with _progress("restored") as tell:
            left_out = restore_files(target, manifest, loaded.data_dir, sealer=sealer, tell=tell)
        if manifest.database == "postgresql":
            asyncio.run(_restore_dump(loaded))
    if as_json:
        print_json(
            {"id": manifest.id, "data_dir": str(loaded.data_dir), "keys": manifest.keys, "left_out": list(left_out)}
        )
        return
    say(f"restored {manifest.id} into {loaded.data_dir}; start it with: terrazzo serve --data {loaded.data_dir}")
    if left_out:
        say(
            f"without {', '.join(left_out)}: they are sealed with the passphrase of the backup. Set"
            " backup.passphrase_file and restore into another folder, or nobody reads pins and other secrets"
        )
    elif manifest.keys != "sealed":
        say(
            f"the backup has no keys: put the file secrets-key that was kept elsewhere into {loaded.data_dir} before"
            " you start it; without it nothing that is sealed can be read, and the platform does not start"
        )


def _make(config: Config, target: str, as_json: bool) -> None:
    if not config.data_dir.is_dir():
        raise ConfigError(f"data.dir: there is no folder {config.data_dir}")
    where = target if "://" in target else str(Path(target).expanduser().resolve())
    with _progress("saved") as tell:
        told = _ask_running(config, where, tell) or asyncio.run(_make_at_rest(config, where, tell))
    if as_json:
        print_json({"target": where, **told})
        return
    say(
        f"backup {told['id']} in {where}: {_size(told['size'])}, {_size(told['put_bytes'])} of it new,"
        f" in {told['took_s']:.1f} s; changes of records waited for {told['held_ms']:.0f} ms"
    )
    if told["keys"] != "sealed":
        from terrazzo.backup.status import KEYS_MISSING

        say(f"warning: {KEYS_MISSING}", to_stderr=True)


def _ask_running(config: Config, target: str, tell: Callable[[int, int], None]) -> dict[str, Any] | None:
    """Has the platform that runs on the folder make the backup; None where none runs."""
    from terrazzo.cli.control import ask_running

    return ask_running(
        config.data_dir,
        {"do": "backup", "target": target},
        lambda line: tell(line.get("done", 0), line.get("total", 0)),
    )


async def _make_at_rest(config: Config, target: str, tell: Callable[[int, int], None]) -> dict[str, Any]:
    from terrazzo.backup.resting import resting_parts
    from terrazzo.database.database import Database
    from terrazzo.runtime.assembly.backups import describe, new_backup_runner
    from terrazzo.runtime.serve import open_target

    database = await Database.open(config.database.url, data_dir=config.data_dir, upgrade=False)
    try:
        runner = new_backup_runner(
            config,
            database=database,
            parts=resting_parts(config.data_dir),
            open_target=lambda name: open_target(config.backup, name),
        )
        manifest = await runner.run(target, tell)
    finally:
        await database.close()
    return describe(manifest, runner.status)


def _list(config: Config, name: str, as_json: bool) -> None:
    from terrazzo.backup.manifest import BackupDamaged
    from terrazzo.backup.saving import backup_ids, read_manifest

    target = _open(config, name)
    ids = backup_ids(target)
    told: list[dict[str, Any]] = []
    for each in ids:
        try:
            found = read_manifest(target, each)
        except BackupDamaged as error:
            told.append({"id": each, "damaged": str(error)})
            continue
        about = {"size": found.size, "files": len(found.files), "keys": found.keys, "version": found.version}
        told.append({"id": each, **about})
    if as_json:
        print_json({"target": target.place, "backups": told})
    elif not told:
        say(f"there is no backup in {target.place}")
    else:
        say(*map(_line, told))


def _line(told: dict[str, Any]) -> str:
    if "damaged" in told:
        return f"{told['id']}  damaged: {told['damaged']}"
    size, files = _size(told["size"]), told["files"]
    return f"{told['id']}  {size}, {files} files, keys {told['keys']}, terrazzo {told['version']}"


def _verify(config: Config, name: str, backup_id: str, as_json: bool) -> None:
    from terrazzo.backup.restoring import check_contents, restore_files

    target, manifest = _find(config, name, backup_id)
    sealer = _sealer(config)
    with _progress("read") as tell:
        wrong = check_contents(target, manifest, sealer=sealer, tell=tell)
    if not wrong:
        with tempfile.TemporaryDirectory(prefix="terrazzo-verify-") as scratch, _progress("opened") as tell:
            folder = Path(scratch) / "data"
            restore_files(target, manifest, folder, sealer=sealer, tell=tell)
            wrong = asyncio.run(_open_restored(config.with_data_dir(folder), manifest))
    if as_json:
        opened = manifest.keys != "sealed" or sealer is not None
        about = {"id": manifest.id, "files": len(manifest.files), "size": manifest.size, "keys_opened": opened}
        print_json({**about, "whole": not wrong, "wrong": wrong})
    else:
        _say_verified(manifest, wrong, sealed=manifest.keys == "sealed" and sealer is None)
    if wrong:
        raise typer.Exit(_FAILED)


def _say_verified(manifest: Manifest, wrong: list[str], *, sealed: bool) -> None:
    for line in wrong:
        say(f"terrazzo: {line}", to_stderr=True)
    if not wrong:
        unopened = "; its keys were not opened, as there is no passphrase" if sealed else ""
        say(f"backup {manifest.id} is whole: {len(manifest.files)} files, {_size(manifest.size)}{unopened}")


async def _open_restored(config: Config, manifest: Manifest) -> list[str]:
    """What is wrong with a backup that was restored: its database and its store are opened."""
    from terrazzo.backup.database_copy import check_sqlite
    from terrazzo.database.database import FILE
    from terrazzo.errors import OperationError
    from terrazzo.ports.store import StoreUnavailable
    from terrazzo.runtime.serve import open_store
    from terrazzo.runtime.supervisor import Supervisor

    wrong = []
    if manifest.database == "sqlite":
        try:
            rows = check_sqlite(config.data_dir / FILE)
        except OperationError as error:
            return [str(error)]
        different = sorted(name for name in {*rows, *manifest.rows} if rows.get(name) != manifest.rows.get(name))
        wrong += [f"table {name}: {rows.get(name)} rows, {manifest.rows.get(name)} were saved" for name in different]
    if manifest.store == "embedded":
        tasks = Supervisor(on_stop=lambda: None)
        try:
            store = await open_store(config, tasks)
            await store.series("")
            await store.close()
        except StoreUnavailable as error:
            wrong.append(str(error))
        finally:
            await tasks.close()
    return wrong


async def _restore_dump(config: Config) -> None:
    import sqlalchemy as sa

    from terrazzo.backup.database_copy import DUMP, run_tool

    dump = config.data_dir / DUMP
    await run_tool("pg_restore", sa.make_url(config.database.url), "--exit-on-error", "--no-owner", "-1", str(dump))
    dump.unlink()


def _find(config: Config, name: str, backup_id: str) -> tuple[BackupTarget, Manifest]:
    from terrazzo.backup.saving import backup_ids, read_manifest

    target = _open(config, name)
    ids = backup_ids(target)
    if not ids:
        raise ConfigError(f"{target.place}: there is no backup in it")
    wanted = backup_id or ids[0]
    if wanted not in ids:
        raise ConfigError(f"--id: there is no backup {wanted!r}; the newest are {', '.join(ids[:5])}")
    return target, read_manifest(target, wanted)


def _open(config: Config, name: str) -> BackupTarget:
    from terrazzo.runtime.serve import open_target

    return open_target(config.backup, name)


def _sealer(config: Config) -> KeySealer | None:
    from terrazzo.backup.key_sealing import KeySealer

    path = config.backup.passphrase_file
    return KeySealer.read(path) if path else None


def _set_umask() -> None:
    import os

    os.umask(PRIVATE_UMASK)


@contextmanager
def _worded() -> Iterator[None]:
    from terrazzo.backup.key_sealing import PassphraseUnusable
    from terrazzo.backup.manifest import BackupDamaged
    from terrazzo.backup.restoring import NotEmpty
    from terrazzo.database.migration import DatabaseUnusable
    from terrazzo.ports.backup_target import TargetFailed
    from terrazzo.ports.store import StoreUnavailable

    try:
        yield
    except (
        BackupDamaged,
        DatabaseUnusable,
        NotEmpty,
        OSError,
        PassphraseUnusable,
        StoreUnavailable,
        TargetFailed,
    ) as error:
        raise ConfigError(str(error)) from error


@contextmanager
def _progress(verb: str) -> Iterator[Callable[[int, int], None]]:
    """Says how far it is, on a terminal only."""
    last = time.monotonic()
    shown = False

    def tell(done: int, total: int) -> None:
        nonlocal last, shown
        if total and sys.stderr.isatty() and time.monotonic() - last > _STEP_S:
            last, shown = time.monotonic(), True
            show_progress(f"{verb} {_size(done)} of {_size(total)}")

    yield tell
    if shown:
        end_progress()


def _size(count: int) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.3g} GB"
