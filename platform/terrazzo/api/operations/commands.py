"""Commands to terminals, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.envelope import Empty, Published
from terrazzo.api.kernel.fields import IdempotencyKey, Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, paged
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.command import CommandState
from terrazzo.domain.command_payload import without_download_secrets
from terrazzo.domain.record import record_of
from terrazzo.times import format_spaced

MOST_RECALLED = 1_000

_Uid = Annotated[str, Meta(min_length=1, max_length=64)]


class TerminalCommand(msgspec.Struct, kw_only=True):
    """``command`` is the point or the verb, ``value`` what it is set to; numbers are sent as numbers.

    A second request with the same ``idempotency_key`` sends nothing.
    """

    terminal_id: Key
    command: Annotated[str, Meta(min_length=1, max_length=64)]
    value: str | int | float | bool
    idempotency_key: IdempotencyKey | None = None


class CommandList(PageRequest):
    """Of one terminal, in one state or in some, or all."""

    terminal_id: Key | None = None
    state: CommandState | None = None
    states: Annotated[list[CommandState], Meta(max_length=len(CommandState), description="any of these")] = (
        msgspec.field(default_factory=list)
    )


class RecallCommands(msgspec.Struct, kw_only=True):
    """Which commands."""

    uids: Annotated[list[_Uid], Meta(min_length=1, max_length=MOST_RECALLED, description="uids of commands")]


class RecalledCommands(msgspec.Struct):
    """``recalled``: those that ended, as failed; ``left``: the others, which may have been sent, or had ended."""

    recalled: list[str]
    left: list[str]


class CommandRecord(msgspec.Struct):
    """A command's journal entry; times are null for what has not happened."""

    id: int
    uid: str
    terminal_id: str
    object_id: str | None
    command: str
    value: str
    payload: Any  # what the terminal is sent
    state: CommandState
    reason: str
    queued: str
    sent: str | None
    delivered: str | None
    answered: str | None
    ended: str | None
    expires: str
    answer: Any  # what the terminal said, null until then
    created_by: int
    rule_id: int | None  # of the rule that gave it


async def handle_publish_terminal_command(services: Services, actor: Actor, request: TerminalCommand) -> Published:
    """Journals the command; it is sent at once, or when the terminal is next there."""
    uid = await find_terminal(services, actor, request.terminal_id)
    key = request.idempotency_key
    return published([await services.commands.submit(actor, uid, request.command, request.value, idempotency_key=key)])


def published(rows: Sequence[Row]) -> Published:
    """The answer that names commands by their journal's rows."""
    return Published([row["uid"] for row in rows])


async def handle_get_command_list(services: Services, actor: Actor, request: CommandList) -> Paged[CommandRecord]:
    """A page of the journal of commands, newest first."""
    uid = None if request.terminal_id is None else await find_terminal(services, actor, request.terminal_id)
    rows = await services.commands.page(
        actor,
        terminal_id=uid,
        states=[each.value for each in (request.states if request.state is None else [request.state])],
        page_index=request.page_index,
        page_size=request.page_size,
    )
    return paged(request, [command_record(row, actor, services.zone) for row in rows.rows], rows.total)


async def handle_recall_commands(services: Services, actor: Actor, request: RecallCommands) -> RecalledCommands:
    """Ends commands that have not been sent yet; one that its terminal may have is left.

    Raises:
        NotFound: one of them is not of the actor's company; then all are left.
    """
    recalled = await services.commands.recall_all(actor, request.uids)
    return RecalledCommands(
        recalled=[uid for uid in request.uids if uid in recalled],
        left=[uid for uid in request.uids if uid not in recalled],
    )


def command_record(row: Row, actor: Actor, zone: tzinfo) -> CommandRecord:
    """A row of the journal as clients get it."""
    times = {
        name: None if row[f"{name}_us"] is None else format_spaced(row[f"{name}_us"], zone)
        for name in ("queued", "sent", "delivered", "answered", "ended", "expires")
    }
    object_id = {"object_id": None if row["object_id"] is None else str(row["object_id"])}
    payload = row["payload"] if actor.may(Role.ADMIN) else without_download_secrets(row["payload"])
    return record_of(CommandRecord, row, times, object_id, {"payload": payload})


OPERATIONS = (
    Operation(
        name="publish_terminal_command",
        summary="Sends a command to a terminal, or queues it until the terminal is there",
        request=TerminalCommand,
        result=Empty,
        permission=Role.OPERATOR,
        handler=handle_publish_terminal_command,
        sends_commands=True,
    ),
    Operation(
        name="get_command_list",
        summary="The journal of commands and what became of them, newest first",
        request=CommandList,
        result=Paged[CommandRecord],
        permission=Role.VIEWER,
        handler=handle_get_command_list,
    ),
    Operation(
        name="recall_commands",
        summary="Ends commands that have not been sent yet",
        request=RecallCommands,
        result=RecalledCommands,
        permission=Role.OPERATOR,
        handler=handle_recall_commands,
    ),
)
