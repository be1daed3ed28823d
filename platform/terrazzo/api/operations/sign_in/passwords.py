"""Users change their own password, and get a new one by mail."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.services import Services
from terrazzo.crypto.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from terrazzo.domain.actor import Actor, Role

_Text = Annotated[str, Meta(min_length=1, max_length=1024)]
_NewPassword = Annotated[str, Meta(min_length=MIN_CHARACTERS, max_length=MAX_CHARACTERS)]


class ChangePassword(msgspec.Struct, kw_only=True):
    """One's own password, and the one to have in its place."""

    old_password: _Text
    password: _NewPassword


class PasswordChanged(msgspec.Struct):
    """The token to go on with: all others of the user have ended."""

    token: str


class RequestPasswordReset(msgspec.Struct, kw_only=True):
    """Whose password is forgotten."""

    username: _Text


class ResetPassword(msgspec.Struct, kw_only=True):
    """The code of the mail, and the new password."""

    code: Annotated[str, Meta(min_length=1, max_length=1024, description="of the mail")]
    password: _NewPassword


class PasswordReset(msgspec.Struct):
    """Who may log in with the new password now."""

    username: str


async def handle_change_password(services: Services, actor: Actor, request: ChangePassword) -> PasswordChanged:
    """Gives whoever asks another password."""
    token = await services.login.change_password(actor, request.old_password, request.password)
    return PasswordChanged(token)


async def handle_request_password_reset(services: Services, caller: Caller, request: RequestPasswordReset) -> Empty:
    """Says the same of every name."""
    services.password_resets.request(request.username, caller.address)
    return Empty()


async def handle_reset_password(services: Services, caller: Caller, request: ResetPassword) -> PasswordReset:
    """Takes a code that was mailed."""
    row = await services.password_resets.reset(request.code, request.password, caller.address)
    return PasswordReset(row["username"])


OPERATIONS = (
    Operation(
        name="change_password",
        summary="Gives oneself another password: all tokens end, the answer has a new one",
        request=ChangePassword,
        result=PasswordChanged,
        permission=Role.VIEWER,
        handler=handle_change_password,
        gives_token=True,
        changes=True,
    ),
    Operation(
        name="request_password_reset",
        summary="Mails a code for a new password to the user, if there is one; the answer is the same in any case",
        request=RequestPasswordReset,
        result=Empty,
        permission=None,
        handler=handle_request_password_reset,
    ),
    Operation(
        name="reset_password",
        summary="Takes the code of the mail for a new password; all tokens of the user end",
        request=ResetPassword,
        result=PasswordReset,
        permission=None,
        handler=handle_reset_password,
    ),
)
