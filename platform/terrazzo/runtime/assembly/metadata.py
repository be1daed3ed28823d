"""Opens the database, and makes what works on it: registry, records, users' tokens, audit log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from terrazzo.access.api_keys import FLUSH_S, ApiKeys
from terrazzo.access.tokens import TokenKey, Tokens
from terrazzo.access.users import FirstAdmin, ensure_admin
from terrazzo.audit.entry import secret_columns
from terrazzo.audit.log import AuditLog
from terrazzo.bulk.entities import BULK_ENTITIES
from terrazzo.bulk.unfinished import LOOK_S as LOOK_AGAIN_S
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.config.sections import Config
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangesLost, ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.database.fence import Fence
from terrazzo.database.usage import count_missing
from terrazzo.domain.registry import Registry
from terrazzo.metadata.company_limits import CompanyLimits
from terrazzo.metadata.definitions.registry import ENTITIES
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.event_quotas import EventQuotas
from terrazzo.metadata.excesses import ALL_COUNTED, find_excesses
from terrazzo.metadata.former_terminals import FormerTerminals
from terrazzo.metadata.out_of_service import LOOK_S as SERVICE_LOOK_S
from terrazzo.metadata.out_of_service import OutOfServiceRecords
from terrazzo.metadata.quotas import RecordQuotas
from terrazzo.metadata.registration import TerminalRegistration
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.metadata.retention import LOOK_S, Retention, RetentionStats
from terrazzo.metadata.sealed_columns import seal_clear
from terrazzo.ports.tasks import OnFailure
from terrazzo.retry import Retry
from terrazzo.runtime.lifetime import Lifetime

_log = logging.getLogger(__name__)

_POLL_S = 0.5  # between looks at what other processes changed: a second at most until it is in force
_MOVE_S = 1.0
_CHANGES = Retry(first_s=0.2, most_s=5.0, attempts=10)  # then others' changes have been ignored for too long


class Metadata(msgspec.Struct, frozen=True):
    """The database and the parts that work on it; ``first_admin``: the account that this start has created."""

    database: Database
    registry: Registry
    former_terminals: FormerTerminals
    quotas: RecordQuotas
    event_quotas: EventQuotas
    entities: Entities
    secrets: Secrets
    registration: TerminalRegistration
    tokens: Tokens
    api_keys: ApiKeys
    audit: AuditLog
    out_of_service: OutOfServiceRecords
    unfinished_imports: UnfinishedImports
    retention: RetentionStats
    first_admin: FirstAdmin | None


async def open_metadata(
    config: Config, lifetime: Lifetime, *, clock: Callable[[], int], fence: Fence | None = None
) -> Metadata:
    """Opens the database, loads the registry, and follows what other processes change; ``fence``: of ``Database.open``.

    Raises:
        DatabaseUnusable: the database can't be opened or migrated; says why.
    """
    folder = config.data_dir
    url, statement_s = config.database.url, config.limits.statement_s
    database = await Database.open(url, data_dir=folder, statement_s=statement_s, fence=fence)
    lifetime.push_async_callback(database.close)
    if fence is not None:
        _keep_position(fence, database, lifetime)
    changes = ChangeWatcher(database)
    await changes.start()
    secrets = await _open_secrets(config, database)
    registry = await load_registry(database, secrets)
    quotas, event_quotas = await _open_quotas(config, database)
    entities = Entities.open(database, registry, secrets, zone=config.zone, quotas=quotas)
    await _follow_limits(entities, quotas.own)
    entities.terminals.pin_chars = config.limits.pin_chars
    entities.configurations.decoders = frozenset(config.ingest.decoders)
    entities.api_keys.of_company = config.limits.company_api_keys
    entities.rules.of_company = config.limits.company_rules
    entities.authorities.of_company = config.limits.company_authorities
    entities.authorities.of_all = config.limits.authorities
    first_admin = await ensure_admin(entities, data_dir=folder, password=config.admin.password)
    await entities.projects.ensure_default()
    token_key = TokenKey(folder, config.auth.token_key)
    key = token_key.load()
    auth = config.auth
    tokens = await Tokens.open(
        database, entities, key=key, token_hours=auth.token_hours, session_days=auth.session_days, clock=clock
    )
    api_keys = await _open_api_keys(entities, tokens, lifetime, clock=clock)
    entities.follow(changes)
    tokens.follow(changes)
    poll = partial(_poll, changes.poll, lifetime, partial(token_key.follow, tokens))
    following = lifetime.tasks.repeat("changes", _POLL_S, poll, OnFailure.RESTART, retry=_CHANGES)
    lifetime.push_async_callback(following.stop)
    audit = AuditLog(database, zone=config.zone, clock=clock, secret_columns=secret_columns(ENTITIES))
    return Metadata(
        database=database,
        registry=registry,
        former_terminals=FormerTerminals(database),
        quotas=quotas,
        event_quotas=event_quotas,
        entities=entities,
        secrets=secrets,
        registration=new_registration(entities),
        tokens=tokens,
        api_keys=api_keys,
        audit=audit,
        out_of_service=await _open_out_of_service(database, registry, lifetime, clock=clock),
        unfinished_imports=await _open_unfinished_imports(database, entities, lifetime),
        retention=_start_retention(config, database, event_quotas, lifetime, clock=clock),
        first_admin=first_admin,
    )


def _keep_position(fence: Fence, database: Database, lifetime: Lifetime) -> None:
    move_on = partial(fence.move_on, database.engine)
    moving = lifetime.tasks.repeat("position of the database", _MOVE_S, move_on, OnFailure.RESTART)
    lifetime.push_async_callback(moving.stop)


async def _open_unfinished_imports(database: Database, entities: Entities, lifetime: Lifetime) -> UnfinishedImports:
    """The record of imports that are under way; what a kill has interrupted is undone before anybody sees it."""
    repositories = {each.entity.name: each.repository(entities) for each in BULK_ENTITIES}
    unfinished = UnfinishedImports(database, repositories.__getitem__)
    await unfinished.undo_abandoned()
    looking = lifetime.tasks.repeat("unfinished imports", LOOK_AGAIN_S, unfinished.undo_abandoned, OnFailure.RESTART)
    lifetime.push_async_callback(looking.stop)
    return unfinished


class FrontMetadata(msgspec.Struct, frozen=True):
    """What a front has of the database: terminals as they log in, and what it writes of them (first logins, claims)."""

    database: Database
    registry: Registry
    entities: Entities
    own_limits: CompanyLimits
    registration: TerminalRegistration


async def open_front_metadata(config: Config, lifetime: Lifetime) -> FrontMetadata:
    """Opens the database for a front, loads the registry, and follows what other processes change.

    Raises:
        DatabaseUnusable: the database can't be opened or migrated; says why.
    """
    url, statement_s = config.database.url, config.limits.statement_s
    database = await Database.open(url, data_dir=config.data_dir, statement_s=statement_s)
    lifetime.push_async_callback(database.close)
    changes = ChangeWatcher(database)
    await changes.start()
    secrets = Secrets.open(config.data_dir, key=config.database.secrets_key, old_key=config.database.secrets_key_old)
    registry = await load_registry(database, secrets)
    own = CompanyLimits()
    quotas = RecordQuotas.of(config.limits, own)
    entities = Entities.open(database, registry, secrets, zone=config.zone, quotas=quotas)
    await _follow_limits(entities, own)
    entities.terminals.pin_chars = config.limits.pin_chars
    entities.configurations.decoders = frozenset(config.ingest.decoders)
    entities.follow(changes)
    poll = partial(_poll, changes.poll, lifetime, lambda: None)
    following = lifetime.tasks.repeat("changes", _POLL_S, poll, OnFailure.RESTART, retry=_CHANGES)
    lifetime.push_async_callback(following.stop)
    return FrontMetadata(database, registry, entities, own, new_registration(entities))


class ReplicaMetadata(msgspec.Struct, frozen=True):
    """What a node that stands by has of the database: all that reads need, and logins."""

    database: Database
    changes: ChangeWatcher
    registry: Registry
    entities: Entities
    secrets: Secrets
    tokens: Tokens
    api_keys: ApiKeys
    audit: AuditLog
    own_limits: CompanyLimits


async def open_replica_metadata(
    config: Config,
    lifetime: Lifetime,
    *,
    clock: Callable[[], int],
    follow: Callable[[ChangeWatcher], Awaitable[object]],
) -> ReplicaMetadata:
    """Opens the database as the leader has left it, and loads the registry and the users.

    Args:
        follow: hears of what other processes change; it is called again and again.

    Raises:
        DatabaseUnusable: the database can't be opened, or is not that of this version; says why.
    """
    url, statement_s = config.database.url, config.limits.statement_s
    database = await Database.open(url, data_dir=config.data_dir, upgrade=False, statement_s=statement_s)
    lifetime.push_async_callback(database.close)
    changes = ChangeWatcher(database)
    await changes.start()
    secrets = Secrets.open(config.data_dir, key=config.database.secrets_key, old_key=config.database.secrets_key_old)
    registry = await load_registry(database, secrets)
    own = CompanyLimits()
    quotas = RecordQuotas.of(config.limits, own)
    entities = Entities.open(database, registry, secrets, zone=config.zone, quotas=quotas)
    await _follow_limits(entities, own)
    auth, key = config.auth, TokenKey(config.data_dir, config.auth.token_key).load()
    tokens = await Tokens.open(
        database, entities, key=key, token_hours=auth.token_hours, session_days=auth.session_days, clock=clock
    )
    api_keys = await _open_api_keys(entities, tokens, lifetime, clock=clock)
    entities.follow(changes)
    tokens.follow(changes)
    poll = partial(_poll, lambda: follow(changes), lifetime, lambda: None)
    following = lifetime.tasks.repeat("changes", _POLL_S, poll, OnFailure.RESTART, retry=_CHANGES)
    lifetime.push_async_callback(following.stop)
    audit = AuditLog(database, zone=config.zone, clock=clock, secret_columns=secret_columns(ENTITIES))
    return ReplicaMetadata(database, changes, registry, entities, secrets, tokens, api_keys, audit, own)


def new_registration(entities: Entities) -> TerminalRegistration:
    """What registers terminals that are known by their uid alone."""
    return TerminalRegistration(entities.terminals, entities.configurations, entities.companies, entities.claim_keys)


async def _open_out_of_service(
    database: Database, registry: Registry, lifetime: Lifetime, *, clock: Callable[[], int]
) -> OutOfServiceRecords:
    """The terminals that are out of service, and the task that puts them back when their time is over."""
    records = OutOfServiceRecords(database, registry, clock=clock)
    await records.load()
    ending = lifetime.tasks.repeat("terminals out of service", SERVICE_LOOK_S, records.end_over, OnFailure.RESTART)
    lifetime.push_async_callback(ending.stop)
    return records


def _start_retention(
    config: Config, database: Database, quotas: EventQuotas, lifetime: Lifetime, *, clock: Callable[[], int]
) -> RetentionStats:
    retention = Retention(database, config.kept_days, quotas=quotas, clock=clock)
    deleting = lifetime.tasks.repeat("retention of records", LOOK_S, retention.run, OnFailure.RESTART)
    lifetime.push_async_callback(deleting.stop)
    return retention.stats


async def _open_api_keys(
    entities: Entities, tokens: Tokens, lifetime: Lifetime, *, clock: Callable[[], int]
) -> ApiKeys:
    """The API keys; when they were used is written in batches, and at the end."""
    api_keys = await ApiKeys.open(entities.api_keys, tokens, users=entities.users.changes, clock=clock)
    flushing = lifetime.tasks.repeat("use of API keys", FLUSH_S, api_keys.flush, OnFailure.RESTART)
    lifetime.push_async_callback(api_keys.flush)
    lifetime.push_async_callback(flushing.stop)
    return api_keys


async def _open_quotas(config: Config, database: Database) -> tuple[RecordQuotas, EventQuotas]:
    """What companies may have; counts what no start has counted yet, and names who is over."""
    new = await count_missing(database, ALL_COUNTED)
    if new:
        _log.info("counted for the first time, by company: %s", ", ".join(new))
    own = CompanyLimits()
    quotas, event_quotas = RecordQuotas.of(config.limits, own), EventQuotas.of(config.limits, own)
    for excess in await find_excesses(database, config.limits):
        _log.warning("%s", excess)
    return quotas, event_quotas


async def _follow_limits(entities: Entities, own: CompanyLimits) -> None:
    """Companies' own limits count from their next change on, whoever writes it."""
    entities.companies.changes.listen(lambda changed: own.put(changed.record_id, changed.row))
    async for row in entities.companies.every():
        own.put(row["id"], row)


async def _open_secrets(config: Config, database: Database) -> Secrets:
    """The keys of stored secrets, and what an older version kept in the clear sealed with them."""
    section = config.database
    secrets = Secrets.open(config.data_dir, key=section.secrets_key, old_key=section.secrets_key_old)
    if secrets.is_replacing:
        _log.warning("secrets are sealed with two keys: terrazzo keys rotate --secrets brings them to the new one")
    count = await seal_clear(database, secrets, RULE)
    if count:
        _log.info("the URLs of %d webhooks are encrypted from now on", count)
    return secrets


async def _poll(follow: Callable[[], Awaitable[object]], lifetime: Lifetime, look_at_key: Callable[[], None]) -> None:
    look_at_key()
    try:
        await follow()
    except ChangesLost as error:
        _log.critical("%s", error)
        lifetime.failed.set()
