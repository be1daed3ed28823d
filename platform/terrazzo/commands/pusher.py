"""The pusher: a command for an object becomes a message to one of its terminals (section 2, Pusher)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from terrazzo.database.port import Repository, Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.command import CommandRequest
from terrazzo.domain.control_table import plan_command
from terrazzo.domain.registry import Registry
from terrazzo.errors import NotFound, Skipped
from terrazzo.metadata.repositories.projects import DEFAULT_PROJECT
from terrazzo.reasons import say


class ObjectRequest(NamedTuple):
    """A command for an object; an empty ``value`` means the control script's default."""

    object_id: int | str
    command: str
    value: str = ""
    project_id: int | str = DEFAULT_PROJECT
    idempotency_key: str | None = None
    expiry_s: int | None = None
    rule_id: int | None = None


class Submitter(Protocol):
    """The command dispatcher, as the pusher needs it."""

    async def submit_all(self, actor: Actor, orders: Sequence[CommandRequest]) -> list[Row]:
        """Journals commands, all or none, and sends them; their records. Raises as ``CommandDispatcher.submit_all``."""


class CommandProjects(Protocol):
    """The projects that commands are sent in."""

    async def for_command(self, actor: Actor, key: int | str) -> Row:
        """The record of a project that the actor may send commands in, by id or uid. Raises NotFound."""


class Records(Protocol):
    """The repositories whose records a command is made from."""

    @property
    def projects(self) -> CommandProjects:
        """The projects."""

    @property
    def objects(self) -> Repository:
        """The objects, with their terminals and control scripts."""

    @property
    def controls(self) -> Repository:
        """The control scripts."""


class Pusher:
    """Applies the eight rules of the contract (section 2, Pusher), for gateway and component interface alike."""

    def __init__(self, commands: Submitter, records: Records, registry: Registry) -> None:
        self._commands = commands
        self._records = records
        self._registry = registry

    async def publish(self, actor: Actor, requests: Sequence[ObjectRequest]) -> list[Row]:
        """Journals the commands in their order, all of them or none; returns their records.

        Raises:
            Skipped: which of the conditions it was that nothing is sent (rule 8).
            NotFound: no such project or object.
            BadParameter, Conflict, Unavailable: as ``Commands.submit_all``.
        """
        return await self._commands.submit_all(actor, [await self._plan(actor, request) for request in requests])

    async def send_for_rule(
        self, actor: Actor, *, rule_id: int, object_id: int, command: str, value: str, key: str, expiry_s: int
    ) -> None:
        """Journals a rule's command in the first project, once, however often it is given with the same key.

        Raises:
            as ``publish``.
        """
        request = ObjectRequest(
            object_id=object_id,
            command=command,
            value=value,
            idempotency_key=key,
            expiry_s=expiry_s,
            rule_id=rule_id,
        )
        await self.publish(actor, [request])

    async def _plan(self, actor: Actor, request: ObjectRequest) -> CommandRequest:
        await self._check_project(actor, request.project_id)
        target = await _item(self._records.objects, actor, request.object_id, "object_id")
        if target["control_id"] is None:
            raise Skipped(say("object_without_control_script", object=target["uid"]))
        control = await self._records.controls.item(actor, target["control_id"])
        company_id = target["permission_company_id"]

        def is_known(uid: str) -> bool:
            terminal = self._registry.terminal(uid)
            return terminal is not None and terminal.company_id == company_id

        terminals = target["terminal_list"] or ()
        found = plan_command(control["script"], request.command, request.value, terminals=terminals, is_known=is_known)
        return CommandRequest(
            terminal_id=found.terminal_id,
            command=request.command,
            value=found.value,
            object_id=target["id"],
            point=found.point,
            idempotency_key=request.idempotency_key,
            expiry_s=request.expiry_s,
            rule_id=request.rule_id,
        )

    async def _check_project(self, actor: Actor, key: int | str) -> None:
        try:
            project = await self._records.projects.for_command(actor, key)
        except NotFound:
            raise NotFound("project_id", key) from None
        if not project["is_active"]:
            raise Skipped(say("project_not_started", project=key))


async def _item(repository: Repository, actor: Actor, key: int | str, field: str) -> Row:
    try:
        return await repository.item(actor, key)
    except NotFound:
        raise NotFound(field, key) from None
