"""``terrazzo keys rotate``: replaces the keys of tokens and of stored secrets; a running platform takes them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from terrazzo.cli.options import ConfigOption, DataOption, JsonOption, read_config
from terrazzo.cli.shown import PRIVATE_UMASK, print_json, say
from terrazzo.config.sections import Config, ConfigError

if TYPE_CHECKING:
    from terrazzo.access.key_rotation import SecretsRotated

_FAILED = 1  # exit status: some secrets can't be opened

_commands = typer.Typer(help="Replace keys.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo keys``."""
    app.add_typer(_commands, name="keys")
    _commands.callback()(_describe)


def _describe() -> None:
    """Replace the keys of tokens and of stored secrets."""


@_commands.command("rotate")
def rotate(
    token: Annotated[bool, typer.Option("--token", help="The key of tokens: all users have to log in again.")] = False,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="The key of stored secrets, and everything sealed anew with it.")
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Replace keys; may be interrupted at any point and run again."""
    import os

    if not (token or secrets):
        raise ConfigError("keys rotate: expected --token, --secrets or both")
    loaded = read_config(config, data)
    os.umask(PRIVATE_UMASK)
    if not loaded.data_dir.is_dir():
        raise ConfigError(f"data.dir: there is no folder {loaded.data_dir}")
    path = _rotate_token(loaded) if token else None
    if path and not as_json:
        say(f"{path} is new: tokens so far are dead, all users have to log in again")
        say("a running platform takes it within a second; none needs a restart")
    told = asyncio.run(_reseal(loaded)) if secrets else None
    if as_json:
        print_json({"token_key": path and str(path), "secrets": told and msgspec.structs.asdict(told)})
    elif told:
        _say_sealed(loaded, told)
    if told and told.unreadable_count:
        raise typer.Exit(_FAILED)


def _rotate_token(config: Config) -> Path:
    from terrazzo.access.key_rotation import rotate_token_key

    if config.auth.token_key:
        raise ConfigError(
            "auth.token_key: the key is in the configuration: put another one there and restart the platform;"
            " from then on all users have to log in again"
        )
    try:
        return rotate_token_key(config.data_dir)
    except (OSError, ValueError) as error:
        raise ConfigError(str(error)) from error


def _say_sealed(config: Config, told: SecretsRotated) -> None:
    say(f"{told.count} secrets sealed anew")
    if told.unreadable_count:
        say(f"{told.unreadable_count} can be opened with neither key: {', '.join(told.unreadable)}")
        say("the old key was kept; restore the key that they were sealed with, or give these records new secrets")
    elif config.database.secrets_key:
        say("everything is sealed with database.secrets_key: take database.secrets_key_old out of the configuration")
    else:
        say("the old key is gone; a running platform uses the new one, none needs a restart")


async def _reseal(config: Config) -> SecretsRotated:
    from terrazzo.access.key_rotation import reseal_configured, rotate_secrets_key
    from terrazzo.database.database import Database
    from terrazzo.database.migration import DatabaseUnusable

    section = config.database
    if section.secrets_key and not section.secrets_key_old:
        raise ConfigError(
            "database.secrets_key: the key is in the configuration: move it to database.secrets_key_old, put a new one"
            " (64 random hexadecimal digits) in its place, restart the platform, and run this again"
        )
    try:
        database = await Database.open(section.url, data_dir=config.data_dir, upgrade=False)
    except DatabaseUnusable as error:
        raise ConfigError(str(error)) from None
    try:
        if section.secrets_key:
            return await reseal_configured(database, config.data_dir, section.secrets_key, section.secrets_key_old)
        return await rotate_secrets_key(database, config.data_dir)
    except (OSError, ValueError) as error:
        raise ConfigError(str(error)) from error
    finally:
        await database.close()
