"""``ClientTrust``: TLS trusts the authorities of all companies as they are now; whom a former one let in is ended."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from terrazzo.domain.certificates.authority import ClientAuthority
from terrazzo.domain.registry import Registry
from terrazzo.embedded.bus import ADMINISTRATIVE_ACTION
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.terminals.link import TerminalLink
from terrazzo_broker.broker import Broker
from terrazzo_broker.hooks import Client

WHY_ENDED = "the authority of its certificate was removed"

_log = logging.getLogger(__name__)


class ClientTrust:
    """Follows the authorities in the registry. A login is held against the registry itself, whatever TLS trusts still.

    Args:
        client_ca: the operator's own authorities (PEM), whose names no company's authority may have; None: there are
            none.
    """

    def __init__(self, broker: Broker, registry: Registry, tasks: Tasks, *, client_ca: Path | None) -> None:
        self._broker = broker
        self._registry = registry
        self._tasks = tasks
        self._client_ca = client_ca
        self._gone: set[int] = set()  # authorities whose terminals are still connected; bounded by their number
        self._changed = asyncio.Event()
        self._following: Task | None = None

    async def start(self) -> None:
        """Has TLS trust them, before the broker listens, and follows changes."""
        self._registry.authorities.changes.listen(self._on_change)
        await self._trust()
        self._following = self._tasks.spawn("client authorities", self._follow, OnFailure.RESTART)

    async def stop(self) -> None:
        """Follows no longer."""
        if self._following is not None:
            await self._following.stop()

    def _on_change(self, gone: ClientAuthority | None) -> None:
        if gone is not None:
            self._gone.add(gone.id)
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._end_connections()
                await self._trust()
            except BaseException:  # it is still to be done
                self._changed.set()
                raise

    async def _trust(self) -> None:
        reserved = await asyncio.to_thread(_subjects_in, self._client_ca)
        trusted = []
        for authority in self._registry.authorities.trusted():
            if authority.subject in reserved:
                _log.warning(
                    "the terminal authority %d has the name of one in mqtt.tls_client_ca, and is not trusted",
                    authority.id,
                )
            else:
                trusted.append(authority.der)
        await self._broker.trust_authorities(trusted)

    async def _end_connections(self) -> None:
        """Ends the connections of terminals that an authority has let in which is gone."""
        gone, pauses = set(self._gone), LoopPauses()
        for client in self._broker.clients() if gone else ():
            if _authority_of(client) in gone and self._broker.client(client.client_id) is client:
                self._broker.disconnect(client.client_id, ADMINISTRATIVE_ACTION, text=WHY_ENDED)
            await pauses.pause()
        self._gone -= gone


def _authority_of(client: Client) -> int:
    return client.identity.authority_id if isinstance(client.identity, TerminalLink) else 0


def _subjects_in(client_ca: Path | None) -> frozenset[bytes]:
    """The names of the authorities in a PEM file; none where it can't be read, which the listener says."""
    if client_ca is None:
        return frozenset()
    from cryptography import x509  # takes a while to load

    try:
        certificates = x509.load_pem_x509_certificates(client_ca.read_bytes())
    except (OSError, ValueError):
        return frozenset()
    return frozenset(each.subject.public_bytes() for each in certificates)
