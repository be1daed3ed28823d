"""What operations use on a replica: its follower's store, the shared database, and nothing that changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from prometheus_client.registry import Collector

from terrazzo.access.credentials import Credentials
from terrazzo.analysis.analysis import Analysis
from terrazzo.api.kernel.replica.seams import ClusterPart
from terrazzo.api.kernel.services import MapTiles, ReadinessCheck, Services
from terrazzo.campaigns.terminal_records import CampaignTerminalRecords
from terrazzo.commands.journal import CommandJournal
from terrazzo.config.sections import Config
from terrazzo.events.definitions import EventDefinitions
from terrazzo.events.events import EventRecords
from terrazzo.events.handovers import Handovers
from terrazzo.events.labels import LabelRecords
from terrazzo.events.object_log import ObjectLog
from terrazzo.ingest.decoders import PayloadDecoders
from terrazzo.ingest.report_reader import ReportReader
from terrazzo.live.hub import LiveHub
from terrazzo.memory_shares import MemoryShares
from terrazzo.messenger.journal import MessageJournal
from terrazzo.metadata.former_terminals import FormerTerminals
from terrazzo.metadata.name_search import NameSearch
from terrazzo.objects.variable_definitions import VariableDefinitions
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import OnFailure
from terrazzo.rules.command_store import RuleCommandRecords
from terrazzo.runtime.assembly.jobs import open_export_process
from terrazzo.runtime.assembly.logins import open_user_login
from terrazzo.runtime.assembly.metadata import ReplicaMetadata
from terrazzo.runtime.assembly.objects import mapping_limits
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.memory_ceiling import memory_ceiling
from terrazzo.runtime.replica.absent import Absent, ReadCommands, ReadMessages
from terrazzo.runtime.replica.node import ReadsNode
from terrazzo.terminals.presence_log import ForeignPresenceLog
from terrazzo.terminals.series_retention import kept_us
from terrazzo_broker.peer_address import TrustedProxies

_ANALYSIS_S = 30.0  # between looks how far the leader's analyses are

_OF_LEADER = (
    *("registration", "unknown_terminals", "terminal_search", "terminal_batches", "bus", "broker", "configurations"),
    *(
        "pusher",
        "object_flags",
        "files",
        "firmware",
        "attention",
        "intake",
        "traces",
        "out_of_service",
        "unfinished_imports",
    ),
    *("wall_links", "password_resets", "second_factors", "single_sign_on", "lockouts", "refusals", "replays"),
)
"""The services that are with the leader."""


async def new_services(
    config: Config,
    lifetime: Lifetime,
    *,
    store: TimeSeriesStore,
    metadata: ReplicaMetadata,
    live: LiveHub,
    node: ReadsNode,
    readiness: Mapping[str, ReadinessCheck],
    read_checks: Mapping[str, ReadinessCheck],
    collectors: Sequence[Collector],
    clock: Callable[[], int],
) -> Services:
    """Makes them, and starts what keeps them up to date; raises ``Unavailable`` where the database doesn't answer."""
    decoders = PayloadDecoders(config.ingest.decoders, cpu_ms=config.ingest.decoder_ms)
    lifetime.push_async_callback(decoders.close)
    logins = open_user_login(config, lifetime, metadata=metadata, clock=clock)
    of_leader: dict[str, Any] = dict.fromkeys(_OF_LEADER, Absent())
    messenger: Any = ReadMessages(
        MessageJournal(metadata.database, zone=config.zone), config.messenger.attachment_bytes
    )
    return Services(
        entities=metadata.entities,
        registry=metadata.registry,
        claim_keys=metadata.entities.claim_keys,
        store=store,
        report_reader=ReportReader(metadata.registry, decoders),
        messenger=messenger,
        login=logins.users,
        tokens=Credentials(metadata.tokens, metadata.api_keys),
        api_keys=metadata.api_keys,
        live=live,
        analysis=await _open_analysis(config, lifetime, store, metadata, clock),
        audit=metadata.audit,
        limits=config.limits,
        own_limits=metadata.own_limits,
        zone=config.zone,
        version=build_info().version,
        session_s=config.auth.token_hours * 3_600,
        command_expiry_s=config.command.expiry_s,
        instance=metadata.tokens.instance,
        mapping_limits=mapping_limits(config),
        prefixes=msgspec.structs.asdict(config.api),
        readiness=readiness,
        tasks=lifetime.tasks,
        proxies=TrustedProxies(config.http.trusted_proxies),
        allowed_origins=config.http.allowed_origins,
        metrics_token=config.metrics.token,
        map_tiles=MapTiles(config.http.map_tiles, config.http.map_attribution),
        memory=MemoryShares(memory_ceiling(config.limits.memory_mib)),
        export_process=open_export_process(lifetime),
        collectors=collectors,
        cluster=ClusterPart(replica=node, read_checks=read_checks),
        **_of_database(config, metadata, clock),
        **of_leader,
    )


def _of_database(config: Config, metadata: ReplicaMetadata, clock: Callable[[], int]) -> dict[str, Any]:
    """What reads rows."""
    database, zone, mappings = metadata.database, config.zone, metadata.entities.mappings
    presence_log = ForeignPresenceLog(database, clock=clock)
    return {
        "former_terminals": FormerTerminals(database),
        "commands": ReadCommands(CommandJournal(database)),
        "campaigns": CampaignTerminalRecords(database),
        "events": EventRecords(database, zone=zone, clock=clock),
        "handovers": Handovers(database, zone=zone, clock=clock),
        "presence_log": presence_log,
        "search": NameSearch(database, metadata.registry, metadata.entities),
        "object_log": ObjectLog(database, presence_log),
        "rule_commands": RuleCommandRecords(database, zone=zone),
        "event_definitions": EventDefinitions(mappings),
        "variable_definitions": VariableDefinitions(mappings),
        "labels": LabelRecords(database, Absent(), zone=zone),
    }


async def _open_analysis(
    config: Config,
    lifetime: Lifetime,
    store: TimeSeriesStore,
    metadata: ReplicaMetadata,
    clock: Callable[[], int],
) -> Analysis:
    """Results of statistics, calculations and balances; the leader computes them."""
    analysis = await Analysis.open(
        store,
        metadata.database,
        metadata.entities,
        zone=config.zone,
        retention_us=kept_us(config.store.retention_days, metadata.registry, metadata.own_limits),
        clock=clock,
    )
    following = lifetime.tasks.repeat("progress of analyses", _ANALYSIS_S, analysis.reload, OnFailure.RESTART)
    lifetime.push_async_callback(following.stop)
    return analysis
