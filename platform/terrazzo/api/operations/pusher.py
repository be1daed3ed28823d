"""Commands for objects: the gateway's two actions and the pusher's path (section 2, Pusher)."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta, UnsetType

from terrazzo.api.kernel.envelope import Empty, Published
from terrazzo.api.kernel.fields import IdempotencyKey, Key, Parsed, parse_json_text
from terrazzo.api.kernel.operation import Operation, nothing
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.commands import published
from terrazzo.commands.pusher import ObjectRequest
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.command_payload import value_text
from terrazzo.metadata.repositories.projects import DEFAULT_PROJECT
from terrazzo.reasons import say

Command = Annotated[str, Meta(min_length=1, max_length=64, description="a code of the object's control script")]
Value = str | int | float | bool
MOST_AT_ONCE = 1_000


class ObjectCommand(msgspec.Struct, kw_only=True):
    """An empty ``value`` means the control script's default; text that is a number is sent as a number."""

    object_id: Key
    command: Command
    value: Value
    project_id: Key = DEFAULT_PROJECT
    idempotency_key: IdempotencyKey | None = None


class PushedCommand(ObjectCommand, kw_only=True):
    """As ``ObjectCommand``, in a project that is named; without a ``value`` the default is sent."""

    project_id: Key
    value: Value = ""


class Publishes(Parsed):
    """Several commands: an array, or its JSON text."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {
                "type": "array",
                "maxItems": MOST_AT_ONCE,
                "items": {
                    "type": "object",
                    "properties": {
                        "object_id": {"type": ["string", "integer"]},
                        "command": {"type": "string", "minLength": 1, "maxLength": 64},
                        "value": {"type": ["string", "number", "boolean"]},
                    },
                    "required": ["object_id", "command", "value"],
                },
            },
            {"type": "string"},
        ],
        "description": "an array of {object_id, command, value}, as such or as JSON text",
    }
    __slots__ = ("commands",)

    def __init__(self, commands: list[ObjectCommand]) -> None:
        self.commands = commands

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """At most ``MOST_AT_ONCE``, and at least one."""
        found = parse_json_text(value) if isinstance(value, str) else value
        try:
            commands = msgspec.convert(found, list[ObjectCommand])
        except msgspec.ValidationError as error:
            raise ValueError(str(error).replace("`", "")) from None
        if not 0 < len(commands) <= MOST_AT_ONCE:
            raise ValueError(say("expected_commands", most=MOST_AT_ONCE, got=len(commands)))
        return cls(commands)


class ObjectCommands(msgspec.Struct, kw_only=True):
    """In their order; all of them can be sent, or none is."""

    publishes: Publishes


async def handle_publish_object_command(services: Services, actor: Actor, request: ObjectCommand) -> Published:
    """Turns the command into a message to one of the object's terminals."""
    return published(await services.pusher.publish(actor, [_of(request)]))


async def handle_publish_object_command_plus(services: Services, actor: Actor, request: ObjectCommands) -> Published:
    """As ``publish_object_command``, several times."""
    return published(await services.pusher.publish(actor, [_of(each) for each in request.publishes.commands]))


def _of(request: ObjectCommand) -> ObjectRequest:
    return ObjectRequest(
        object_id=request.object_id,
        command=request.command,
        value=value_text(request.value),
        project_id=request.project_id,
        idempotency_key=request.idempotency_key,
    )


OPERATIONS = (
    Operation(
        name="publish_object_command",
        summary="Sends a command of an object's control table to its terminal, or queues it",
        request=ObjectCommand,
        result=Empty,
        permission=Role.OPERATOR,
        handler=handle_publish_object_command,
        sends_commands=True,
    ),
    Operation(
        name="publish_object_command_plus",
        summary="Sends several commands of objects",
        request=ObjectCommands,
        result=Empty,
        permission=Role.OPERATOR,
        handler=handle_publish_object_command_plus,
        sends_commands=True,
        aliases=("publish_object_commnad_plus",),  # as the document spells it
    ),
)

PUBLISH = Operation(
    name="publish",
    summary="Turns a command for an object into a message to one of its terminals",
    request=PushedCommand,
    result=UnsetType,
    permission=Role.OPERATOR,
    handler=handle_publish_object_command,
    method="POST",
    path="/pusher/api/v1/publish",
    shape=nothing,
)
