"""``terrazzo user``: manages users in the database; a running platform hears of the changes within a second."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from terrazzo.cli.options import ConfigOption, DataOption, JsonOption, read_config
from terrazzo.cli.shown import PRIVATE_UMASK, cell, print_json, say
from terrazzo.config.sections import Config, ConfigError
from terrazzo.errors import BadParameter
from terrazzo.times import format_iso
from terrazzo_broker.log_text import visible

if TYPE_CHECKING:
    from terrazzo.database.port import Row
    from terrazzo.metadata.repositories.users import UserRepository

Username = Annotated[str, typer.Argument(metavar="USERNAME", help="The name to log in with.", show_default=False)]
PasswordStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
Generate = Annotated[bool, typer.Option("--generate", help="Make a random password and print it.")]

_SHOWN = ("id", "username", "role", "is_super", "is_active", "permission_company_id", "email", "created_at")

_commands = typer.Typer(help="Add, list and change users.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo user``."""
    app.add_typer(_commands, name="user")


@_commands.command("add")
def add_user(
    username: Username,
    role: Annotated[str, typer.Option(help="viewer, operator or admin.")] = "viewer",
    company: Annotated[str, typer.Option(help="Id or uid of the user's company.")] = "1",
    super_user: Annotated[bool, typer.Option("--super", help="Sees and changes all companies.")] = False,
    email: Annotated[str, typer.Option(help="E-mail address.", show_default=False)] = "",
    description: Annotated[str, typer.Option(help="Description.", show_default=False)] = "",
    password_stdin: PasswordStdin = False,
    generate: Generate = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Add a user; asks for the password unless told otherwise."""
    loaded = read_config(config, data)
    password = _read_password(password_stdin, generate)
    values = {
        "username": username,
        "password": password,
        "role": role,
        "is_super": int(super_user),
        "permission_company_id": company,
        "email": email,
        "description": description,
    }
    row = _run(loaded, lambda users: users.create(_system(), values))
    text = f"added user {row['username']} (id {row['id']}, {row['role']})"
    _say_done(text, row, as_json, password if generate else None)


@_commands.command("list")
def list_users(
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """List all users."""
    loaded = read_config(config, data)
    rows = [_shown(row, loaded.zone) for row in _run(loaded, _all_users)]
    if as_json:
        print_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*(name.removeprefix("permission_") for name in _SHOWN))
    for row in rows:
        table.add_row(*map(cell, row.values()))
    Console().print(table)


@_commands.command("password")
def change_password(
    username: Username,
    password_stdin: PasswordStdin = False,
    generate: Generate = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Set a user's password; their tokens end."""
    loaded = read_config(config, data)
    password = _read_password(password_stdin, generate)
    row = _run(loaded, lambda users: _change(users, username, {"password": password}))
    _say_done(f"changed the password of {username}", row, as_json, password if generate else None)


@_commands.command("deactivate")
def deactivate_user(
    username: Username, as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None
) -> None:
    """Keep a user from logging in; their tokens end."""
    row = _run(read_config(config, data), lambda users: _change(users, username, {"is_active": 0}))
    _say_done(f"deactivated user {username}", row, as_json)


@_commands.command("activate")
def activate_user(
    username: Username, as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None
) -> None:
    """Let a deactivated user log in again."""
    row = _run(read_config(config, data), lambda users: _change(users, username, {"is_active": 1}))
    _say_done(f"activated user {username}", row, as_json)


@_commands.command("remove-second-factor")
def remove_second_factor(
    username: Username, as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None
) -> None:
    """Take the second factor of a user away who has lost it; their tokens end."""
    row = _run(read_config(config, data), lambda users: _remove_second_factor(users, username))
    _say_done(f"removed the second factor of {username}", row, as_json)


@_commands.command("delete")
def delete_user(
    username: Username,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Delete a user; their tokens end."""
    loaded = read_config(config, data)
    if not yes:
        typer.confirm(f"Delete user {username}?", abort=True)
    row = _run(loaded, lambda users: _delete(users, username))
    _say_done(f"deleted user {username}", row, as_json)


def _run(config: Config, work: Callable[[UserRepository], Awaitable[Any]]) -> Any:
    os.umask(PRIVATE_UMASK)

    async def open_and_work() -> Any:
        async with _users(config) as users:
            return await work(users)

    return asyncio.run(open_and_work())


@asynccontextmanager
async def _users(config: Config) -> AsyncIterator[UserRepository]:
    from terrazzo.crypto.secrets import KEY_BYTES, Secrets
    from terrazzo.database.database import Database
    from terrazzo.database.migration import DatabaseUnusable
    from terrazzo.metadata.definitions.registry import ENTITIES
    from terrazzo.metadata.repositories.users import UserRepository

    try:
        database = await Database.open(config.database.url, data_dir=config.data_dir, upgrade=False)
    except DatabaseUnusable as error:
        raise ConfigError(str(error)) from None
    try:
        unused = Secrets(os.urandom(KEY_BYTES))  # no column of a user is sealed
        yield UserRepository(database=database, secrets=unused, entities=ENTITIES)
    finally:
        await database.close()


async def _change(users: UserRepository, username: str, values: dict[str, Any]) -> Row:
    return await users.update(_system(), await _id_of(users, username), values)


async def _remove_second_factor(users: UserRepository, username: str) -> Row:
    return await users.set_second_factor(_system(), await _id_of(users, username), has=False)


async def _delete(users: UserRepository, username: str) -> Row:
    return await users.delete(_system(), await _id_of(users, username))


async def _id_of(users: UserRepository, username: str) -> int:
    """The id of the user with this name; names only, so that ``user delete 7`` can't delete the user with id 7."""
    row = await users.by_name(username)
    if row is None:
        raise BadParameter("username", f"there is no user {username}")
    return int(row["id"])


async def _all_users(users: UserRepository) -> list[Row]:
    return [users.public(row) async for row in users.every()]


def _system() -> Any:
    from terrazzo.access.users import at_command_line

    return at_command_line()


def _shown(row: Row, zone: tzinfo) -> dict[str, Any]:
    return {name: row[name] for name in _SHOWN} | {"created_at": format_iso(row["created_at"], zone)}


def _read_password(from_stdin: bool, generate: bool) -> str:
    if from_stdin and generate:
        raise ConfigError("--generate: can't be combined with --password-stdin")
    if generate:
        return secrets.token_urlsafe(12)
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise ConfigError("--password-stdin: give the password with it, or use --generate: there is no terminal to ask")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))


def _say_done(text: str, row: Row, as_json: bool, password: str | None = None) -> None:
    """Says what was done; ``password``: one that was made, which nobody else knows."""
    if as_json:
        made = {} if password is None else {"password": password}
        print_json({"done": visible(text), "id": row["id"], "username": row["username"], **made})
        return
    say(text)
    if password is not None:
        say(f"password: {password}")
