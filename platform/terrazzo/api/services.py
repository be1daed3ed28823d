"""What the operations work on: every seam they use, handed in by the composition file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Protocol

from prometheus_client.registry import Collector

from terrazzo.access.actor import Actor
from terrazzo.bus import BrokerView, MessageBus
from terrazzo.metadata.port import Repository, Row, Rows
from terrazzo.store import TimeSeriesStore
from terrazzo.terminals.registry import Registry

ReadinessCheck = Callable[[], Awaitable[None]]
"""Returns when a part accepts work and raises otherwise; the error's text is shown to operators."""


class Entities(Protocol):
    """The stored entities."""

    @property
    def terminals(self) -> Repository: ...

    @property
    def configurations(self) -> Repository: ...


class UserLogin(Protocol):
    """Turns a name and a password into a token."""

    async def login(self, username: str, password: str, address: str) -> tuple[Row, str]:
        """The user's record and a new token.

        Raises:
            NotAuthenticated: wrong credentials, or a deactivated user.
            Throttled: too many failures of this user or address.
        """


class Tokens(Protocol):
    """Says whose a token is."""

    async def verify(self, token: str) -> Actor:
        """Raises ``NotAuthenticated`` for a token that is malformed, expired or revoked."""

    async def revoke(self, token: str) -> None:
        """Ends a token before its time; raises as ``verify`` does."""


class Commands(Protocol):
    """The journal of commands and their way to the terminals."""

    async def submit(
        self, actor: Actor, terminal_id: str, command: str, value: Any, *, idempotency_key: str | None = None
    ) -> Row:
        """Journals a command, and sends it as soon as the terminal is there."""

    async def page(
        self,
        actor: Actor,
        *,
        terminal_id: str | None = None,
        state: str | None = None,
        page_index: int = 1,
        page_size: int = 20,
    ) -> Rows:
        """Commands, newest first."""


class Limits(Protocol):
    """What the APIs need of the section ``limits``."""

    @property
    def body_bytes(self) -> int: ...

    @property
    def import_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The seams, one field each."""

    entities: Entities
    registry: Registry
    store: TimeSeriesStore
    bus: MessageBus
    broker: BrokerView
    commands: Commands
    login: UserLogin
    tokens: Tokens
    limits: Limits
    zone: tzinfo
    prefixes: Mapping[str, str] = field(default_factory=dict)  # grid_base -> /grid, where not the default
    readiness: Mapping[str, ReadinessCheck] = field(default_factory=dict)  # part -> check
    collectors: Sequence[Collector] = ()
