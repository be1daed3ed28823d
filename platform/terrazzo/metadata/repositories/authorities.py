"""The repository of the authorities that vouch for terminals: few, each with a name that no other company's has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from cryptography.hazmat.primitives.serialization import Encoding

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.certificates.authority import expires_us, fingerprint_of, parse_authority, subject_hash_of
from terrazzo.errors import BadParameter, Conflict, QuotaExceeded
from terrazzo.metadata.company_limits import Limit
from terrazzo.metadata.definitions.registry import TERMINAL_AUTHORITY
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.reasons import say

_SUBJECT_CHARS = 255


class AuthorityRepository(EntityRepository):
    """The authorities. ``of_company``: how many a company may have; ``of_all``: how many TLS trusts."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(TERMINAL_AUTHORITY, **parts)
        self.of_company = 10
        self.of_all = 1_000

    async def create(self, actor: Actor, values: Mapping[str, Any]) -> Row:
        """Stores a new authority.

        Raises:
            BadParameter: the certificate is none that may vouch for terminals, or has expired.
            Conflict: the company has it already, or another one has another of that name.
            QuotaExceeded: there are as many as may be.
        """
        return await self._create(actor, values, {})

    def check_draft(self, draft: Draft, before: Row | None) -> None:
        """Fills in what the certificate says, and leaves out what stands around it."""
        if "certificate" not in draft:
            return
        certificate = parse_authority(draft["certificate"])
        draft["certificate"] = certificate.public_bytes(Encoding.PEM).decode()
        draft["subject"] = certificate.subject.rfc4514_string()[:_SUBJECT_CHARS]
        draft["fingerprint"] = fingerprint_of(certificate)
        draft["subject_hash"] = subject_hash_of(certificate)
        draft["expires"] = expires_us(certificate)
        if draft["expires"] <= self._clock():
            raise BadParameter("certificate", say("has_expired"))

    async def _resolve(self, connection: AsyncConnection, draft: Draft, company: int) -> None:
        await super()._resolve(connection, draft, company)
        if "certificate" not in draft:
            return
        columns = self.table.c
        same_name = columns.subject_hash == draft["subject_hash"]
        others = sa.and_(same_name, columns[COMPANY] != company, columns.fingerprint != draft["fingerprint"])
        if await self._count(connection, others):
            raise Conflict(say("authority_of_another_company"))
        if await self._count(
            connection, sa.and_(columns[COMPANY] == company, columns.fingerprint == draft["fingerprint"])
        ):
            raise Conflict(say("authority_registered"))
        for mine, limit in (
            (columns[COMPANY] == company, self._quotas.own.limit(company, "authorities", self.of_company)),
            (sa.true(), Limit(self.of_all, "limits.authorities")),
        ):
            has = await self._count(connection, mine)
            if has >= limit.most:
                raise QuotaExceeded("terminal_authority", has + 1, limit.most, "authorities", limit.key)

    async def _count(self, connection: AsyncConnection, where: sa.ColumnElement[bool]) -> int:
        counted = await connection.execute(sa.select(sa.func.count()).select_from(self.table).where(where))
        return int(counted.scalar_one())
