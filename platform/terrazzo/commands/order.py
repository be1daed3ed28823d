"""Checks a command request and makes the journal's row of it."""

from __future__ import annotations

import secrets
from typing import Any, Protocol

import msgspec

from terrazzo.database.port import Repository
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.command import CommandRequest, CommandState, FirmwareLink
from terrazzo.domain.command_payload import Firmware, build_control, build_payload, needs_firmware, value_text
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import BadParameter, Conflict, NotFound, NotPermitted
from terrazzo.reasons import say

MAX_KEY = 128


class FirmwareLinks(Protocol):
    """Makes the URLs at which terminals download firmware files (``campaigns.download_links.SignedLinks``)."""

    async def link(self, terminal: Terminal, file: str) -> FirmwareLink:
        """The URL for this terminal; ``file`` is a URL already, or names a stored file.

        Raises:
            BadParameter: there is no such file.
        """


class CommandOrders:
    """Checks command requests and makes the journal's rows of them.

    Args:
        registry: the terminals.
        configurations: where ``AXUpgrade`` finds its files.
        expiry_us: how long a command may wait for its terminal.
        links: makes download URLs for stored files; without, configurations name URLs only.
        upgrade_role: who may send ``AXUpgrade``, which has a terminal run other software.
        upgrade_details: whether ``AXUpgrade`` says size, SHA-256 and version where they are known.
    """

    def __init__(
        self,
        registry: Registry,
        configurations: Repository,
        *,
        expiry_us: int,
        links: FirmwareLinks | None = None,
        upgrade_role: Role = Role.ADMIN,
        upgrade_details: bool = False,
    ) -> None:
        self._registry = registry
        self._configurations = configurations
        self._expiry_us = expiry_us
        self._links = links
        self._upgrade_role = upgrade_role
        self._upgrade_details = upgrade_details

    async def values(self, actor: Actor, order: CommandRequest, *, now_us: int) -> dict[str, Any]:
        """The values of a new row of the table ``command``; ``now_us`` is when the command counts as given.

        Raises:
            NotFound: no such terminal in the actor's company.
            NotPermitted: ``AXUpgrade``, and the actor's role doesn't reach ``upgrade_role``.
            Conflict: the terminal's company is closed.
            BadParameter: names the command, the value, or what else is wrong.
        """
        self._check_upgrade(actor, order)
        terminal = self._terminal(actor, order.terminal_id)
        if not terminal.company_is_available:
            raise Conflict(say("terminal_company_closed", terminal=terminal.uid))
        if terminal.access == "pub":
            raise BadParameter("terminal_id", say("terminal_only_publishes"))
        key = order.idempotency_key
        if key is not None and not (0 < len(key) <= MAX_KEY and key.isprintable()):
            raise BadParameter("idempotency_key", say("expected_printable", most=MAX_KEY))
        return {
            "uid": secrets.token_hex(16),
            "company_id": terminal.company_id,
            "terminal_id": terminal.uid,
            "object_id": order.object_id,
            "command": order.command,
            "value": value_text(order.value),
            "payload": await self._payload(actor, terminal, order),
            "state": CommandState.QUEUED.value,
            "queued_us": now_us,
            "expires_us": now_us + self._expiry_of(order),
            "created_by": actor.user_id,
            "idempotency_key": key,
            "rule_id": order.rule_id,
        }

    def _expiry_of(self, order: CommandRequest) -> int:
        if order.expiry_s is None:
            return self._expiry_us
        return min(order.expiry_s * 1_000_000, self._expiry_us)

    def _check_upgrade(self, actor: Actor, order: CommandRequest) -> None:
        if order.point is None and needs_firmware(order.command) and not actor.may(self._upgrade_role):
            needed = self._upgrade_role.name.lower()
            raise NotPermitted(
                say(
                    "command_needs_role",
                    command=order.command,
                    role=needed,
                    user=actor.username,
                    is_role=actor.role.name.lower(),
                )
            )

    def _terminal(self, actor: Actor, terminal_id: str) -> Terminal:
        terminal = self._registry.terminal(terminal_id)
        if terminal is None and terminal_id.isdecimal():  # its number finds it too
            terminal = self._registry.terminal_by_id(int(terminal_id))
        if terminal is None or not (actor.is_super or terminal.company_id == actor.company_id):
            raise NotFound("terminal_id", terminal_id)
        return terminal

    async def _payload(self, actor: Actor, terminal: Terminal, order: CommandRequest) -> bytes:
        if order.point is not None:
            return build_control(order.point, order.value)
        firmware = await self._firmware(actor, terminal, order)
        return build_payload(order.command, order.value, firmware, with_details=self._upgrade_details)

    async def _firmware(self, actor: Actor, terminal: Terminal, order: CommandRequest) -> Firmware | None:
        if not needs_firmware(order.command):
            return None
        files = order.firmware or await self._configured(actor, terminal)
        unit = order.value if isinstance(order.value, str) else ""
        name = f"{unit.lower()}_file"
        file = getattr(files, name, "")
        if self._links is None or not file:
            return files
        link = await self._links.link(terminal, file)
        return msgspec.structs.replace(files, **{name: link.url}, size=link.size, sha256=link.sha256)

    async def _configured(self, actor: Actor, terminal: Terminal) -> Firmware:
        if terminal.config_id is None:
            return Firmware()
        record = await self._configurations.item(actor, terminal.config_id)
        return Firmware(
            lua_file=record["lua_file"] or "",
            mcu_file=record["mcu_file"] or "",
            lua_version=record["lua_version"] or "",
            mcu_version=record["mcu_version"] or "",
        )
