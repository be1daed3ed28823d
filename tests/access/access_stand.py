"""What tests of access work with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from terrazzo.access.refusals import RefusalLog
from terrazzo.access.second_factor import SecondFactors
from terrazzo.access.tokens import Tokens
from terrazzo.access.users import UserLogin
from terrazzo.audit.log import AuditLog
from terrazzo.database.database import Database
from terrazzo.domain.actor import SYSTEM
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.logins.places import KnownPlaces
from terrazzo.metadata.entities import Entities
from terrazzo.times import now_us


class _Clock:
    """A clock that moves by hand."""

    def __init__(self) -> None:
        self.time_us = now_us()

    def __call__(self) -> int:
        return self.time_us

    def advance(self, seconds: float) -> None:
        self.time_us += int(seconds * 1_000_000)


@dataclass
class AccessStand:
    Clock: ClassVar = _Clock

    data: Path
    database: Database
    entities: Entities
    tokens: Tokens
    clock: _Clock
    login: UserLogin = field(init=False)
    refusals: RefusalLog = field(init=False)

    async def user(self, name: str, **values: Any) -> Any:
        return await self.entities.users.create(SYSTEM, {"username": name, "password": "good password"} | values)

    def new_login(self, *, failures: int = 3, window_s: float = 60, places: KnownPlaces | None = None) -> UserLogin:
        """Another login for the same users; without ``places`` nobody is known anywhere."""
        audit = AuditLog(self.database, clock=self.clock)
        self.refusals = RefusalLog(audit, clock=self.clock)
        return UserLogin(
            self.entities,
            self.tokens,
            audit,
            refusals=self.refusals,
            limiter=LoginLimiter(failures, window_s, places),
            factors=SecondFactors(self.database, self.entities.users.secrets, clock=self.clock),
            clock=self.clock,
        )

    async def token(self, name: str) -> str:
        return (await self.login.login(name, "good password", "10.0.0.1"))[1]
