"""Single sign-on: a browser is sent to the provider, and comes back with a code."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.operation import Caller, Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.session import User, logged_in


class BeginSingleSignOn(msgspec.Struct, kw_only=True):
    """Nothing is needed."""


class SingleSignOnBegun(msgspec.Struct):
    """``url``: where the browser goes; ``ticket``: what it keeps to itself until it is back."""

    url: str
    ticket: str


class FinishSingleSignOn(msgspec.Struct, kw_only=True):
    """``state`` and ``code`` as the provider added them to ``sso.redirect_url``, and the ``ticket`` that was kept."""

    state: Annotated[str, Meta(min_length=1, max_length=128, description="as it came back")]
    ticket: Annotated[str, Meta(min_length=1, max_length=128, description="of the login that was begun")]
    code: Annotated[str, Meta(min_length=1, max_length=4_096, description="of the provider")]


async def handle_begin(services: Services, caller: Caller, request: BeginSingleSignOn) -> SingleSignOnBegun:
    """Begins a login."""
    begun = await services.single_sign_on.begin(caller.address)
    return SingleSignOnBegun(begun.url, begun.ticket)


async def handle_finish(services: Services, caller: Caller, request: FinishSingleSignOn) -> User:
    """A token, as of a login; a connection is authenticated by it from here on."""
    row, token = await services.single_sign_on.finish(request.state, request.ticket, request.code, caller.address)
    return logged_in(services, caller, row, token)


OPERATIONS = (
    Operation(
        name="begin_single_sign_on",
        summary="Begins a login at the provider of single sign-on: where the browser goes",
        request=BeginSingleSignOn,
        result=SingleSignOnBegun,
        permission=None,
        handler=handle_begin,
    ),
    Operation(
        name="finish_single_sign_on",
        summary="Logs the user in who is back from the provider: the result is that of login",
        request=FinishSingleSignOn,
        result=User,
        permission=None,
        handler=handle_finish,
        gives_token=True,
    ),
)
