"""Options of commands that use a running platform, and the client made of them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from terrazzo.client.errors import ActionError, ClientError, NotSent
from terrazzo.config.sections import ConfigError

if TYPE_CHECKING:
    from terrazzo.client import Client

DEFAULT_URL = "http://127.0.0.1:31507"
TOKEN_VARIABLE = "TERRAZZO_TOKEN"
PASSWORD_VARIABLE = "TERRAZZO_PASSWORD"
_NOT_AUTHENTICATED = 10402

UrlOption = Annotated[str, typer.Option("--url", metavar="URL", help="The running platform.")]
UserOption = Annotated[
    str, typer.Option("--user", metavar="NAME", help=f"User name; the password is asked for, or ${PASSWORD_VARIABLE}.")
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token", metavar="TOKEN", help=f"A token instead of a user, or ${TOKEN_VARIABLE}.", show_default=False
    ),
]


def failed(error: ClientError) -> ConfigError:
    """The error that ends a command with one line and exit status 2."""
    if isinstance(error, NotSent):
        return ConfigError(f"--url: {error}; start the platform, or say with --url where it is")
    if isinstance(error, ActionError) and error.code == _NOT_AUTHENTICATED:
        return ConfigError(f"{error}; give a token that is good with --token, or a user with --user")
    return ConfigError(str(error))


def connect(url: str, user: str, token: str | None) -> Client:
    """A client of the platform at ``url``, with a token or with user and password.

    Raises:
        ConfigError: ``url`` is no URL, or there is neither token nor password.
    """
    from terrazzo.client import Client

    token = token or os.environ.get(TOKEN_VARIABLE)
    try:
        if token:
            return Client(url, token=token)
        return Client(url, username=user, password=_password(user))
    except ValueError as error:
        raise ConfigError(f"--{error}") from None


def _password(user: str) -> str:
    """The password from the environment or the keyboard; other users of the machine could read it from an option."""
    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        return given
    if not sys.stdin.isatty():
        raise ConfigError(f"--token: give a token, or set {PASSWORD_VARIABLE}: there is no terminal to ask")
    return str(typer.prompt(f"Password of {user}", hide_input=True, err=True))
