"""The parts' counters that ``/metrics`` shows, and their names there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from prometheus_client.registry import Collector

from terrazzo.analysis.analysis import AnalysisStats
from terrazzo.api.kernel.services import Services
from terrazzo.campaigns.runner import CampaignStats
from terrazzo.commands.dispatcher import CommandStats
from terrazzo.commands.submissions import Submissions
from terrazzo.database.database import Database
from terrazzo.diagnostics.journal import RefusalStats
from terrazzo.ingest.commit_group import IngestStats
from terrazzo.live.stats import LiveStats
from terrazzo.metadata.retention import RetentionStats
from terrazzo.ports.store import StoreStats
from terrazzo.runtime.assembly import metric_names as names
from terrazzo.runtime.assembly import screen_metric_names as screen_names
from terrazzo.runtime.assembly.bridge_metrics import REMOTE_ACCESS
from terrazzo.runtime.assembly.collectors import DurationCollector, LabelledCollector, QueryCollector, StatsCollector
from terrazzo_broker.stats import Stats


def part_metrics(
    *,
    store: Callable[[], StoreStats],
    former: msgspec.Struct,
    broker: Stats,
    ingest: IngestStats,
    commands: CommandStats,
    configurations: msgspec.Struct,
    login: msgspec.Struct,
    remote_access: msgspec.Struct,
    refusals: RefusalStats,
    provisioning: msgspec.Struct,
    user_login: msgspec.Struct,
    password_resets: msgspec.Struct,
    single_sign_on: msgspec.Struct,
    engine: msgspec.Struct,
    effect_queue: msgspec.Struct,
    campaigns: CampaignStats,
    messenger: msgspec.Struct,
    rules: msgspec.Struct,
    rule_watch: msgspec.Struct,
    rule_commands: msgspec.Struct,
    analysis: AnalysisStats,
    live: LiveStats,
    flags: msgspec.Struct,
    quotas: msgspec.Struct,
    event_quotas: msgspec.Struct,
) -> list[Collector]:
    """A collector for each part's counters."""
    return [
        *_durations(store, ingest),
        *_by_label(broker, ingest, campaigns, commands, refusals),
        StatsCollector(names.STORE, store),
        StatsCollector(names.FORMER_DATA, lambda: former),
        StatsCollector(names.BROKER, lambda: broker),
        StatsCollector(names.INGEST, lambda: ingest),
        StatsCollector(names.MAPPING, lambda: engine),
        StatsCollector(names.EFFECTS, lambda: effect_queue),
        StatsCollector(names.MESSENGER, lambda: messenger),
        StatsCollector(names.RULES, lambda: rules),
        StatsCollector(names.RULE_WATCH, lambda: rule_watch),
        StatsCollector(names.RULE_COMMANDS, lambda: rule_commands),
        StatsCollector(names.CAMPAIGNS, lambda: campaigns),
        StatsCollector(names.COMMANDS, lambda: commands),
        StatsCollector(names.CONFIGURATIONS, lambda: configurations),
        StatsCollector(names.LOGIN, lambda: login),
        StatsCollector(REMOTE_ACCESS, lambda: remote_access),
        StatsCollector(names.REFUSALS, lambda: refusals),
        StatsCollector(names.PROVISIONING, lambda: provisioning),
        StatsCollector(names.USER_LOGIN, lambda: user_login),
        StatsCollector(names.PASSWORD_RESETS, lambda: password_resets),
        StatsCollector(names.SINGLE_SIGN_ON, lambda: single_sign_on),
        StatsCollector(names.ANALYSIS, lambda: analysis),
        StatsCollector(names.LIVE, lambda: live),
        StatsCollector(names.FLAGS, lambda: flags),
        StatsCollector(names.QUOTAS, lambda: quotas),
        StatsCollector(names.EVENT_QUOTAS, lambda: event_quotas),
    ]


def kept_metrics(
    *,
    event_expiry: msgspec.Struct,
    retention: RetentionStats,
    decoders: msgspec.Struct,
    attention: msgspec.Struct,
    presence_log: msgspec.Struct,
    series_use: msgspec.Struct,
) -> list[Collector]:
    """Collectors for what ends by itself, and for decoders."""
    return [
        StatsCollector(names.EVENT_EXPIRY, lambda: event_expiry),
        StatsCollector(names.RETENTION, lambda: retention),
        LabelledCollector(
            "terrazzo_retention_deleted_total",
            "kind",
            "Rows deleted because they are older than their retention, by kind",
            lambda: retention.deleted,
        ),
        StatsCollector(names.DECODERS, lambda: decoders),
        StatsCollector(screen_names.ATTENTION, lambda: attention),
        StatsCollector(screen_names.PRESENCE_LOG, lambda: presence_log),
        StatsCollector(screen_names.SERIES_USE, lambda: series_use),
    ]


def answer_metrics(services: Callable[[], Services], database: Database, commands: Submissions) -> list[Collector]:
    """Collectors for what requests are refused, because their company has so much under way already."""

    def refused() -> dict[str, float]:
        parts = services()
        return {
            "imports": parts.imports.refused,
            "exports": parts.exports.refused,
            "queries": parts.queries.refused,
            "mapping trials": parts.trials.refused,
            "commands": commands.refused,
            "database": database.refused,
            "store": parts.store.stats().refused_queries,
        }

    told = "Requests refused because as many of their company waited for a turn as may, by the work"
    return [
        StatsCollector(screen_names.ANSWERS, lambda: services().answer_stats),
        StatsCollector(screen_names.REMEMBERED, lambda: services().remembered.stats),
        LabelledCollector("terrazzo_turns_refused_total", "work", told, refused),
    ]


def _durations(store: Callable[[], StoreStats], ingest: IngestStats) -> list[Collector]:
    return [
        QueryCollector(store),
        DurationCollector(
            "terrazzo_ingest_seconds",
            "From the arrival of reports to their acknowledgement; each counts as the oldest of its commit",
            ingest.waits,
        ),
        DurationCollector("terrazzo_commit_seconds", "Time of a commit to the time-series store", ingest.commit_times),
    ]


def _by_label(
    broker: Stats,
    ingest: IngestStats,
    campaigns: CampaignStats,
    commands: CommandStats,
    refusals: RefusalStats,
) -> list[Collector]:
    return [
        LabelledCollector(
            "terrazzo_broker_dropped_total",
            "reason",
            "Messages that did not reach a receiver, by reason",
            lambda: broker.dropped,
        ),
        rejects_metric(ingest),
        LabelledCollector(
            "terrazzo_campaign_terminals_total",
            "state",
            "Terminals of campaigns that came to a state",
            lambda: campaigns.terminals,
        ),
        LabelledCollector("terrazzo_commands_total", "state", "Commands that came to a state", lambda: commands.steps),
        LabelledCollector(
            "terrazzo_refusals_total",
            "reason",
            "Refusals of terminals, by reason (docs/troubleshooting.md)",
            lambda: refusals.reasons,
        ),
    ]


def rejects_metric(ingest: IngestStats) -> Collector:
    """What an ingest has kept as rejects."""
    told = "Reports kept as rejects, by what is wrong with them"
    return LabelledCollector("terrazzo_ingest_rejects_total", "kind", told, lambda: ingest.rejects)
