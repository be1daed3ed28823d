"""The second factor: users turn it on and off with their password, administrators take it away from who has lost it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role

_Text = Annotated[str, Meta(min_length=1, max_length=1024)]
_Code = Annotated[str, Meta(min_length=1, max_length=64, description="of the app, or a recovery code")]


class EnrolSecondFactor(msgspec.Struct, kw_only=True):
    """A user's credentials, as for ``login``."""

    username: _Text
    password: _Text


class SecondFactorEnrolled(msgspec.Struct):
    """The new secret in base32, and as the address in a QR code for an app; ``confirm_second_factor`` is next."""

    secret: str
    uri: str


class ConfirmSecondFactor(msgspec.Struct, kw_only=True):
    """A user's credentials, and the code that the app shows."""

    username: _Text
    password: _Text
    code: _Code


class SecondFactorConfirmed(msgspec.Struct):
    """Recovery codes, each of which stands in for the app once, and a token: all others have ended."""

    recovery_codes: list[str]
    token: str


class RenewRecoveryCodes(ConfirmSecondFactor, kw_only=True):
    """A user's credentials, and a code of the app or a recovery code."""


class MadeCodes(msgspec.Struct):
    """The new codes; the ones before are no good any more."""

    recovery_codes: list[str]


class DisableSecondFactor(ConfirmSecondFactor, kw_only=True):
    """A user's credentials, and a code of the app or a recovery code."""


class RemoveSecondFactor(msgspec.Struct, kw_only=True):
    """The user who has lost it."""

    uid: Key


class SecondFactorRemoved(msgspec.Struct):
    """The user whose second factor was taken away."""

    uid: str


async def handle_enrol(services: Services, caller: Caller, request: EnrolSecondFactor) -> SecondFactorEnrolled:
    """Makes a secret."""
    made = await services.second_factors.enrol(request.username, request.password, caller.address)
    return SecondFactorEnrolled(made.secret, made.uri)


async def handle_confirm(services: Services, caller: Caller, request: ConfirmSecondFactor) -> SecondFactorConfirmed:
    """Puts the secret in force; a connection is authenticated by the new token from here on."""
    made = await services.second_factors.confirm(request.username, request.password, request.code, caller.address)
    caller.token = made.token
    return SecondFactorConfirmed(made.recovery_codes, made.token)


async def handle_renew_recovery_codes(services: Services, caller: Caller, request: RenewRecoveryCodes) -> MadeCodes:
    """Makes other recovery codes."""
    factors = services.second_factors
    return MadeCodes(await factors.renew_recovery(request.username, request.password, request.code, caller.address))


async def handle_disable(services: Services, caller: Caller, request: DisableSecondFactor) -> Empty:
    """Takes one's own away."""
    await services.second_factors.disable(request.username, request.password, request.code, caller.address)
    return Empty()


async def handle_remove(services: Services, actor: Actor, request: RemoveSecondFactor) -> SecondFactorRemoved:
    """Takes somebody's away."""
    row = await services.second_factors.remove(actor, request.uid)
    return SecondFactorRemoved(row["username"])


OPERATIONS = (
    Operation(
        name="enrol_second_factor",
        summary="Makes a secret for an authenticator app; it is in force when it is confirmed",
        request=EnrolSecondFactor,
        result=SecondFactorEnrolled,
        permission=None,
        handler=handle_enrol,
    ),
    Operation(
        name="confirm_second_factor",
        summary="Puts a second factor in force: from now on login asks for its codes; all tokens end",
        request=ConfirmSecondFactor,
        result=SecondFactorConfirmed,
        permission=None,
        handler=handle_confirm,
        gives_token=True,
    ),
    Operation(
        name="renew_recovery_codes",
        summary="Makes other recovery codes",
        request=RenewRecoveryCodes,
        result=MadeCodes,
        permission=None,
        handler=handle_renew_recovery_codes,
    ),
    Operation(
        name="disable_second_factor",
        summary="Takes one's own second factor away; all tokens end",
        request=DisableSecondFactor,
        result=Empty,
        permission=None,
        handler=handle_disable,
    ),
    Operation(
        name="remove_second_factor",
        summary="Takes the second factor of a user away who has lost it; all tokens of the user end",
        request=RemoveSecondFactor,
        result=SecondFactorRemoved,
        permission=Role.ADMIN,
        handler=handle_remove,
    ),
)
