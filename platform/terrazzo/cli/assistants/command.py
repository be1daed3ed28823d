"""The command: who asks as whom, and over what."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

from terrazzo.cli.connection import DEFAULT_URL, PASSWORD_VARIABLE, TOKEN_VARIABLE, UrlOption
from terrazzo.config.sections import ConfigError

if TYPE_CHECKING:
    from terrazzo.client import AsyncClient

USER_VARIABLE = "TERRAZZO_USER"


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo mcp``."""
    app.command("mcp")(mcp)


def mcp(
    url: UrlOption = DEFAULT_URL,
    http_port: Annotated[
        int | None,
        typer.Option("--http-port", help="Serve HTTP there instead of standard input.", min=1, max=65_535),
    ] = None,
    http_host: Annotated[str, typer.Option("--http-host", help="The address to serve HTTP at.")] = "127.0.0.1",
    allow_commands: Annotated[
        bool, typer.Option("--allow-commands", help="With a tool that sends commands; each needs confirm: true.")
    ] = False,
) -> None:
    """Answer assistants by the Model Context Protocol; reads only, unless --allow-commands is given."""
    try:
        from terrazzo.cli.assistants.server import serve_http, serve_stdio
    except ImportError:
        raise ConfigError("mcp: needs the official SDK: pip install 'terrazzo[mcp]'") from None
    if http_port is not None:
        serve_http(url, http_host, http_port, allow_commands=allow_commands)
        return
    asyncio.run(serve_stdio(new_client(url), allow_commands=allow_commands))


def new_client(url: str) -> AsyncClient:
    """A client with the API key, or the user and password, of the environment.

    Raises:
        ConfigError: there is neither, or ``url`` is no URL.
    """
    from terrazzo.client.asynchronous import AsyncClient

    token = os.environ.get(TOKEN_VARIABLE)
    user, password = os.environ.get(USER_VARIABLE), os.environ.get(PASSWORD_VARIABLE)
    try:
        if token:
            return AsyncClient(url, token=token)
        if user and password:
            return AsyncClient(url, username=user, password=password)
    except ValueError as error:
        raise ConfigError(f"--{error}") from None
    raise ConfigError(
        f"mcp: set {TOKEN_VARIABLE} to an API key (docs/users.md), or {USER_VARIABLE} and {PASSWORD_VARIABLE}"
    )
