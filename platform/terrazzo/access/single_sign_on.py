"""Single sign-on: users come back from the provider with a code, and get a token of ours.

A login is begun and finished by one browser: besides the ``state`` that travels by the provider it keeps a ``ticket``
that does not, so that nobody can have somebody else finish what they have begun.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from terrazzo.access.refusals import RefusalLog
from terrazzo.access.tokens import Tokens, actor_of
from terrazzo.audit.entry import about_user
from terrazzo.audit.log import AuditLog
from terrazzo.config.sso import SsoSection
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.errors import BadParameter, NotAuthenticated, NotFound, Throttled, Unavailable
from terrazzo.logins.address_rate import AddressRate
from terrazzo.metadata.entities import Entities
from terrazzo.reasons import Said, say
from terrazzo.sparse_log import SparseLog

if TYPE_CHECKING:
    from terrazzo.access.oidc import OidcProvider

PENDING_S = 600.0  # a login takes at most
MOST_PENDING = 10_000  # logins that were begun; the oldest makes room
OF_ADDRESS, WINDOW_S = 60, 300.0  # that an address begins, and that it finishes
AT_ONCE, MOST_WAITING = 8, 64  # logins that ask the provider

_ROLES = {role.name.lower(): role for role in Role}
_RANDOM_BYTES = 32
_SUPER = say("sso_of_super_user")


class Begun(NamedTuple):
    """Where the browser goes, and what it keeps."""

    url: str
    ticket: str


class SsoStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    begun: int = 0
    accepted: int = 0
    refused: int = 0


class _Pending(NamedTuple):
    nonce: str
    verifier: str
    ticket_hash: bytes
    until_us: int


class SingleSignOn:
    """Logins by the provider of the section ``sso``.

    Args:
        provider: None: there is none, and everybody is told so.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        section: SsoSection,
        provider: OidcProvider | None,
        *,
        entities: Entities,
        tokens: Tokens,
        audit: AuditLog,
        refusals: RefusalLog,
        clock: Callable[[], int],
    ) -> None:
        self.stats = SsoStats()
        self._log = SparseLog(logging.getLogger(__name__))
        self._section = section
        self._provider = provider
        self._users = entities.users
        self._companies = entities.companies
        self._tokens = tokens
        self._audit = audit
        self._refusals = refusals
        self._clock = clock
        self._pending: OrderedDict[str, _Pending] = OrderedDict()  # by state
        self._begins = AddressRate(OF_ADDRESS, WINDOW_S)
        self._ends = AddressRate(OF_ADDRESS, WINDOW_S)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    @property
    def is_configured(self) -> bool:
        """Whether there is a provider."""
        return self._provider is not None

    async def begin(self, address: str) -> Begun:
        """Begins a login.

        Raises:
            BadParameter: no provider is configured.
            Throttled: too many from that address.
            Unavailable: the provider doesn't answer.
        """
        provider = self._configured()
        self._check_rate(self._begins, address)
        state, nonce, verifier, ticket = (secrets.token_urlsafe(_RANDOM_BYTES) for _ in range(4))
        async with self._turn():
            url = await provider.address(state=state, nonce=nonce, verifier=verifier)
        until_us = self._clock() + int(PENDING_S * 1_000_000)
        self._pending[state] = _Pending(nonce, verifier, _hash_of(ticket), until_us)
        if len(self._pending) > MOST_PENDING:
            self._pending.popitem(last=False)
        self.stats.begun += 1
        return Begun(url, ticket)

    async def finish(self, state: str, ticket: str, code: str, address: str) -> tuple[Row, str]:
        """The user's record and a new token.

        Raises:
            NotAuthenticated: the login wasn't begun here or was finished already, the provider refuses the code, its
                token is no good, or who it names may not log in; says which.
            Throttled, Unavailable: as ``begin``.
        """
        provider = self._configured()
        self._check_rate(self._ends, address)
        try:
            pending = self._take(state, ticket)
            async with self._turn():
                claims = await provider.claims(code, verifier=pending.verifier, nonce=pending.nonce)
            row = await self._user_of(claims, address)
        except (NotAuthenticated, Unavailable) as error:
            self.stats.refused += 1
            self._log.warning("a login by single sign-on from %s was refused: %s", address, error)
            raise
        user = msgspec.structs.replace(actor_of(row), address=address)
        told = about_user(user, "login")
        await self._audit.note(msgspec.structs.replace(told, after={"by": "single sign-on"}))
        self.stats.accepted += 1
        return self._users.public(row), self._tokens.issue_for(row)

    def _take(self, state: str, ticket: str) -> _Pending:
        """What was begun, which is gone from then on."""
        pending = self._pending.pop(state, None)
        if pending is None or pending.until_us <= self._clock():
            raise NotAuthenticated(say("sso_state_unknown"))
        if not hmac.compare_digest(pending.ticket_hash, _hash_of(ticket)):
            raise NotAuthenticated(say("sso_ticket_of_other_login"))
        return pending

    async def _user_of(self, claims: Mapping[str, Any], address: str) -> Row:
        """Whom the claims name, with the role that they give; the first login makes or links an account."""
        role = role_of(claims, self._section)
        subject = _subject(self._section.issuer, claims)
        row = await self._users.by_subject(subject)
        if row is None:
            row = await self._first_login(username_of(claims, self._section), subject, role, address)
        if row["is_super"]:
            await self._refuse(row, address, "single sign-on of a super user", _SUPER)
        if not row["by_sso"]:
            await self._refuse(row, address, "single sign-on not allowed", say("sso_not_allowed"))
        if not row["is_active"] or not self._tokens.is_open(row[COMPANY]):
            await self._refuse(row, address, "deactivated", say("user_or_company_deactivated"))
        if row["role"] != role:
            await self._users.update(_provider_at(address), row["id"], {"role": role})
        return await self._read(row["username"])

    async def _first_login(self, username: str, subject: str, role: str, address: str) -> Row:
        known = await self._users.by_name(username)
        company = await self._company()
        if known is None and self._section.create_users:
            values = {"username": username, "role": role, "by_sso": 1, COMPANY: company["id"]}
            await self._users.create_by_sso(_provider_at(address), values, subject)
        elif known is None:
            await self._refusals.note(username, address, None, "unknown to us")
            raise NotAuthenticated(say("sso_no_account"))
        else:
            if not known["by_sso"] or known["sso_hash"] or known[COMPANY] != company["id"]:
                reason = say("sso_name_of_another")
                await self._refuse(known, address, "single sign-on not allowed", reason)
            if known["is_super"]:
                await self._refuse(known, address, "single sign-on of a super user", _SUPER)
            await self._users.link_subject(_provider_at(address), known["id"], subject)
        return await self._read(username)

    async def _company(self) -> Row:
        try:
            return await self._companies.item(SYSTEM, self._section.company)
        except NotFound:
            raise Unavailable(say("sso_no_company", company=self._section.company)) from None

    async def _read(self, username: str) -> Row:
        row = await self._users.by_name(username)
        if row is None:
            raise NotAuthenticated(say("user_deleted"))
        return row

    async def _refuse(self, row: Row, address: str, reason: str, told: Said) -> NoReturn:
        await self._refusals.note(row["username"], address, actor_of(row), reason)
        raise NotAuthenticated(told)

    def _configured(self) -> OidcProvider:
        if self._provider is None:
            raise BadParameter("action", say("sso_not_configured"))
        return self._provider

    def _check_rate(self, rate: AddressRate, address: str) -> None:
        wait_s = rate.take(address, self._clock() / 1_000_000)
        if wait_s:
            raise Throttled(say("too_many_logins_from_address", wait_s=math.ceil(wait_s)), wait_s)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Waits for a turn to ask the provider, and has it until the end of the block."""
        if self._turns.locked() and self._waiting >= MOST_WAITING:
            raise Unavailable(say("too_many_logins"))
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()


def role_of(claims: Mapping[str, Any], section: SsoSection) -> str:
    """The highest role that the claim ``sso.role_claim`` gives, else ``sso.default_role``.

    Raises:
        NotAuthenticated: none.
    """
    value = _claim(claims, section.role_claim)
    values = value if isinstance(value, list) else [value]
    given = [section.roles[each] for each in values if isinstance(each, str) and each in section.roles]
    role = max(given, key=_ROLES.__getitem__, default=section.default_role)
    if role not in _ROLES:
        raise NotAuthenticated(say("sso_gives_no_role", claim=section.role_claim))
    return role


def username_of(claims: Mapping[str, Any], section: SsoSection) -> str:
    """The user name in the claim ``sso.username_claim``; an address of mail must have been verified.

    Raises:
        NotAuthenticated: there is none.
    """
    name = section.username_claim
    value = _claim(claims, name)
    if not isinstance(value, str) or not value:
        raise NotAuthenticated(say("sso_claim_missing", name=name))
    if name == "email" and claims.get("email_verified") is not True:
        raise NotAuthenticated(say("sso_email_unverified"))
    return value


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by its path with dots."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _subject(issuer: str, claims: Mapping[str, Any]) -> str:
    """What a provider's user is known by for good: names may change hands there."""
    return hashlib.sha256(f"{issuer}\n{claims['sub']}".encode("utf-8", "surrogatepass")).hexdigest()


def _provider_at(address: str) -> Actor:
    return msgspec.structs.replace(SYSTEM, username="single sign-on", address=address)


def _hash_of(ticket: str) -> bytes:
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()
