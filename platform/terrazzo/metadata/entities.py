"""``Entities``: one repository for each entity, and the registry in memory that follows their changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Any

import msgspec

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.memory_shares import Kept
from terrazzo.metadata.definitions.components import (
    COLLECT,
    COLLECTOS,
    FILE,
    GROUP,
    GROUP_MAP,
    OBJECT_DASHBOARD,
    SERVICE,
    UPLOAD,
)
from terrazzo.metadata.definitions.registry import (
    BALANCE,
    CALCULATE,
    CONTROL,
    CUSTOMER,
    DASHBOARD,
    ENTITIES,
    MAPPING,
    RETAINER,
    STATISTICS,
)
from terrazzo.metadata.quotas import RecordQuotas
from terrazzo.metadata.registry_feed import RegistryFeed
from terrazzo.metadata.repositories.api_keys import ApiKeyRepository
from terrazzo.metadata.repositories.authorities import AuthorityRepository
from terrazzo.metadata.repositories.campaigns import CampaignRepository
from terrazzo.metadata.repositories.claim_keys import ClaimKeyRepository
from terrazzo.metadata.repositories.companies import CompanyRepository
from terrazzo.metadata.repositories.configurations import ConfigurationRepository
from terrazzo.metadata.repositories.files import FileRepository
from terrazzo.metadata.repositories.objects import ObjectRepository
from terrazzo.metadata.repositories.projects import ProjectRepository
from terrazzo.metadata.repositories.repository import EntityRepository
from terrazzo.metadata.repositories.rules import RuleRepository
from terrazzo.metadata.repositories.scripts import ScriptRepository
from terrazzo.metadata.repositories.stamped import StampedRepository
from terrazzo.metadata.repositories.terminals import TerminalRepository
from terrazzo.metadata.repositories.users import UserRepository


class Entities(msgspec.Struct, frozen=True):
    """All repositories, one for each entity."""

    companies: CompanyRepository
    users: UserRepository
    terminals: TerminalRepository
    configurations: ConfigurationRepository
    claim_keys: ClaimKeyRepository
    authorities: AuthorityRepository
    mappings: EntityRepository
    controls: EntityRepository
    customers: EntityRepository
    objects: ObjectRepository
    retainers: ScriptRepository
    statistics: ScriptRepository
    calculates: ScriptRepository
    balances: ScriptRepository
    dashboards: EntityRepository
    projects: ProjectRepository
    campaigns: CampaignRepository
    services: StampedRepository
    collects: EntityRepository
    collected: StampedRepository
    groups: EntityRepository
    group_maps: EntityRepository
    object_dashboards: EntityRepository
    files: EntityRepository
    uploads: EntityRepository
    rules: RuleRepository
    api_keys: ApiKeyRepository

    def kept_rows(self) -> Mapping[int, Kept]:
        """The bytes of each company's rows that were read lately; those of names, which are all companies', for 0."""
        found: Counter[int] = Counter()
        for repository in self._repositories():
            found.update({owner: kept.bytes for owner, kept in repository.cache.kept().items()})
            found[0] += 0 if repository.names is None else repository.names.size
        return {owner: Kept(size) for owner, size in found.items()}

    def give_up_rows(self, owner: int, size: int) -> int:
        """Drops rows of a company until so many bytes are free; how many are."""
        freed = 0
        for repository in self._repositories():
            freed += repository.cache.give_up(owner, size - freed) if freed < size else 0
        return freed

    def _repositories(self) -> Iterator[EntityRepository]:
        return (getattr(self, name) for name in self.__struct_fields__)

    @classmethod
    def open(
        cls,
        database: Database,
        registry: Registry,
        secrets: Secrets,
        *,
        zone: tzinfo = UTC,
        quotas: RecordQuotas | None = None,
    ) -> Entities:
        """Makes the repositories; changes of companies, terminals and objects are put into ``registry`` after commits.

        Args:
            zone: the time zone of times without an offset in conditions.
            quotas: what a company may have; None: as much as it wants.
        """
        parts: dict[str, Any] = {"database": database, "secrets": secrets, "entities": ENTITIES, "zone": zone}
        parts["quotas"] = quotas
        entities = cls(
            companies=CompanyRepository(**parts),
            users=UserRepository(**parts),
            terminals=TerminalRepository(**parts),
            configurations=ConfigurationRepository(**parts),
            claim_keys=ClaimKeyRepository(**parts),
            authorities=AuthorityRepository(**parts),
            mappings=EntityRepository(MAPPING, **parts),
            controls=EntityRepository(CONTROL, **parts),
            customers=EntityRepository(CUSTOMER, **parts),
            objects=ObjectRepository(**parts),
            retainers=ScriptRepository(RETAINER, **parts),
            statistics=ScriptRepository(STATISTICS, **parts),
            calculates=ScriptRepository(CALCULATE, **parts),
            balances=ScriptRepository(BALANCE, **parts),
            dashboards=EntityRepository(DASHBOARD, **parts),
            projects=ProjectRepository(**parts),
            campaigns=CampaignRepository(**parts),
            services=StampedRepository(SERVICE, "service_at", **parts),
            collects=EntityRepository(COLLECT, **parts),
            collected=StampedRepository(COLLECTOS, "collect_at", **parts),
            groups=EntityRepository(GROUP, **parts),
            group_maps=EntityRepository(GROUP_MAP, **parts),
            object_dashboards=EntityRepository(OBJECT_DASHBOARD, **parts),
            files=FileRepository(FILE, **parts),
            uploads=EntityRepository(UPLOAD, **parts),
            rules=RuleRepository(**parts),
            api_keys=ApiKeyRepository(**parts),
        )
        feed = RegistryFeed(registry)
        entities.terminals.changes.listen(feed.on_terminal)
        entities.objects.changes.listen(feed.on_object)
        entities.claim_keys.changes.listen(feed.on_claim_key)
        entities.authorities.changes.listen(feed.on_authority)
        entities.companies.changes.listen(feed.on_company)
        entities.configurations.changes.listen(feed.on_configuration)
        return entities

    def every(self) -> list[EntityRepository]:
        """All of them."""
        return [getattr(self, name) for name in self.__struct_fields__]

    def follow(self, changes: ChangeWatcher) -> None:
        """Hears of what other processes change."""
        for repository in self.every():
            changes.on(repository.entity.name, repository.refresh)
