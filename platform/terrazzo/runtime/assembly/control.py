"""What commands on this machine ask of the platform that runs: backups, and why terminals are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.terminal_status import (
    AddressRefusalsQuery,
    TerminalStatusQuery,
    handle_get_address_refusals,
    handle_get_terminal_status,
)
from terrazzo.backup.key_sealing import PassphraseUnusable
from terrazzo.backup.manifest import BackupDamaged
from terrazzo.config.sections import Config
from terrazzo.domain.actor import SYSTEM
from terrazzo.errors import BadParameter, OperationError
from terrazzo.ports.backup_target import TargetFailed
from terrazzo.ports.store import StoreUnavailable
from terrazzo.runtime.control_socket import Answerer, ControlSocket, Say
from terrazzo.runtime.lifetime import Lifetime
from terrazzo_broker.storage import StorageError

_EXPECTED = (OperationError, StoreUnavailable, StorageError, TargetFailed, BackupDamaged, PassphraseUnusable, OSError)


async def start_control(
    config: Config, lifetime: Lifetime, services: Services, answerers: Mapping[str, Answerer]
) -> None:
    """Listens in the data folder for what other parts answer, and for what is asked of terminals."""
    whys = TerminalAnswers(services)
    known = {**answerers, "terminal_status": whys.status, "address_refusals": whys.refusals_at}
    control = ControlSocket(config.data_dir, known, expected=_EXPECTED)
    await control.start()
    lifetime.push_async_callback(control.stop)


class TerminalAnswers:
    """Says what ``get_terminal_status`` and ``get_address_refusals`` say, to whoever may open the data folder."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def status(self, question: dict[str, Any], _say: Say) -> dict[str, Any]:
        """Of the terminal with the uid ``terminal_id``; empty where there is none."""
        uid = _text(question, "terminal_id")
        if self._services.registry.terminal(uid) is None:
            return {}
        query = TerminalStatusQuery(terminal_id=uid)
        return _fields(await handle_get_terminal_status(self._services, SYSTEM, query))

    async def refusals_at(self, question: dict[str, Any], _say: Say) -> dict[str, Any]:
        """Of the address ``address``."""
        query = AddressRefusalsQuery(address=_text(question, "address"))
        return _fields(await handle_get_address_refusals(self._services, SYSTEM, query))


def _text(question: dict[str, Any], key: str) -> str:
    value = question.get(key)
    if not isinstance(value, str) or not value:
        raise BadParameter(key, "expected a text")
    return value


def _fields(answer: msgspec.Struct) -> dict[str, Any]:
    return dict(msgspec.to_builtins(answer))
