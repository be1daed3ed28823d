"""Live subscriptions over connections that stay, and what keeps them to their actors' rights."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

from terrazzo.access.api_keys import is_api_key
from terrazzo.api.kernel.envelope import NOT_AUTHENTICATED, NOT_PERMITTED, Empty
from terrazzo.api.kernel.fields import Key, Names, VariableNames
from terrazzo.api.kernel.identity import identify
from terrazzo.api.kernel.operation import Caller, Operation, Subscriber
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter, NotAuthenticated, NotFound, NotPermitted
from terrazzo.live.feed import Sink
from terrazzo.live.frames import End
from terrazzo.live.selector import LiveKind, Selector
from terrazzo.live.session import LiveSession
from terrazzo.reasons import Said, reason_of, say, told_by

_KINDS = [kind.value for kind in LiveKind]
_ONE_OF = f"one of {', '.join(_KINDS)}"
_OF_RECORDS = (LiveKind.GRID.value, LiveKind.MOSAIC.value)
_KIND_SCHEMA = {"type": "string", "enum": _KINDS}


class Kinds(Names):
    """``Names`` that are kinds of what happens; at least one."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "string"}, {"type": "array", "items": _KIND_SCHEMA}],
        "description": f"{_ONE_OF}; a list of them, or a list as JSON text",
    }
    __slots__ = ()

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Reads at least one name of ``LiveKind``."""
        kinds = super().parse(value, zone)
        if not kinds.names:
            raise ValueError(say("expected_at_least", expected=_ONE_OF))
        for name in kinds.names:
            if name not in _KINDS:
                raise ValueError(say("is_not_one_of", name=name[:100], expected=_ONE_OF))
        return kinds


class Subscribe(msgspec.Struct, kw_only=True):
    """What to be told of: all of the company, of an object, or of a terminal."""

    kinds: Kinds
    object_id: Key | None = None
    terminal_id: Key | None = None
    keys: VariableNames = msgspec.field(default_factory=VariableNames)  # of mosaic records
    since: Annotated[int, Meta(ge=0, le=2**63 - 1, description="a seq: send what came after it")] | None = None


class Subscribed(msgspec.Struct):
    """``subscription`` names it in frames and to ``unsubscribe``; frames have numbers above ``seq``."""

    subscription: int
    seq: int


class Unsubscribe(msgspec.Struct, kw_only=True):
    """One of this connection's subscriptions."""

    subscription: Annotated[int, Meta(ge=1, le=2**63 - 1)]


def open_session(services: Services, caller: Caller, sink: Sink) -> LiveSession:
    """The live side of a connection; its subscriptions end with the rights of the token that it last sent."""

    tokens = services.tokens
    good: tuple[int, str | None, Actor | None] = (-1, None, None)  # what was found good: of which version, and whose

    async def check(actor: Actor) -> End | None:
        nonlocal good
        version = tokens.version
        if good[0] == version and good[1] is caller.token and good[2] is actor:
            return None
        try:
            if not caller.token:
                raise NotAuthenticated(say("logged_out"))
            now = identify(tokens, caller)
        except NotAuthenticated as error:
            return End(code=NOT_AUTHENTICATED, info=str(error), reason=reason_of(told_by(error)))
        if (now.company_id, now.is_super) != (actor.company_id, actor.is_super):
            return _not_permitted(say("connection_of_another_company"))
        if now.role < actor.role:
            return _not_permitted(say("role_allows_less"))
        if not is_api_key(caller.token):  # which is looked at anew each time
            good = version, caller.token, actor
        return None

    return LiveSession(services.live, sink, check=check, most=services.limits.ws_subscriptions)


def _not_permitted(told: Said) -> End:
    return End(code=NOT_PERMITTED, info=str(told), reason=reason_of(told))


async def handle_subscribe(services: Services, subscriber: Subscriber, request: Subscribe) -> Subscribed:
    """Subscribes; frames follow the answer."""
    if request.keys.names and LiveKind.MOSAIC.value not in request.kinds.names:
        raise BadParameter("keys", say("goes_with_mosaic"))
    if services.cluster.replica is not None:
        _check_told(request)
    if LiveKind.TRACE.value in request.kinds.names:
        _check_trace(subscriber.actor, request)
    selector = await _selector(services, subscriber.actor, request)
    keys = frozenset(request.keys.names)
    subscription = subscriber.live.subscribe(subscriber.actor, selector, keys=keys, since=request.since)
    return Subscribed(subscription.number, subscription.seq)


def _check_told(request: Subscribe) -> None:
    """Raises ``BadParameter`` for what a node that stands by is not told of."""
    for name in request.kinds.names:
        if name not in _OF_RECORDS:
            raise BadParameter("kinds", say("replica_tells_of", name=name, kinds=", ".join(_OF_RECORDS)))


def _check_trace(actor: Actor, request: Subscribe) -> None:
    """Raises ``NotPermitted`` for who is no administrator, and ``BadParameter`` where no terminal is named."""
    if not actor.may(Role.ADMIN):
        raise NotPermitted(say("trace_for_administrators"))
    if request.terminal_id is None:
        raise BadParameter("terminal_id", say("required_for_trace"))


async def handle_unsubscribe(services: Services, subscriber: Subscriber, request: Unsubscribe) -> Empty:
    """Ends a subscription; no frame of it follows the answer."""
    subscriber.live.unsubscribe(request.subscription)
    return Empty()


async def _selector(services: Services, actor: Actor, request: Subscribe) -> Selector:
    terminal_id = None if request.terminal_id is None else await find_terminal(services, actor, request.terminal_id)
    return Selector(
        kinds=frozenset(request.kinds.names),
        company_id=None if actor.is_super else actor.company_id,
        object_id=None if request.object_id is None else await _find_object(services, actor, request.object_id),
        terminal_id=terminal_id,
    )


async def _find_object(services: Services, actor: Actor, key: str | int) -> int:
    try:
        return int((await services.entities.objects.item(actor, key))["id"])
    except NotFound:
        raise NotFound("object_id", key) from None


OPERATIONS = (
    Operation(
        name="subscribe",
        summary="Subscribes to what happens: frames follow on this connection, a WebSocket or TCP",
        request=Subscribe,
        result=Subscribed,
        permission=Role.VIEWER,
        handler=handle_subscribe,
        connection=True,
    ),
    Operation(
        name="unsubscribe",
        summary="Ends a live subscription of this connection",
        request=Unsubscribe,
        result=Empty,
        permission=Role.VIEWER,
        handler=handle_unsubscribe,
        connection=True,
    ),
)
