"""Which of the parts' counters ``/metrics`` shows, and how it calls them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from prometheus_client.registry import Collector

from terrazzo.analysis.analysis import AnalysisStats
from terrazzo.campaigns.runner import CampaignStats
from terrazzo.commands.dispatcher import CommandStats
from terrazzo.ingest.commit_group import IngestStats
from terrazzo.live.stats import LiveStats
from terrazzo.ports.store import StoreStats
from terrazzo.runtime.assembly import metric_names as names
from terrazzo.runtime.assembly.collectors import Labelled, Numbered
from terrazzo_broker.stats import Stats


def part_metrics(
    *,
    store: Callable[[], StoreStats],
    broker: Stats,
    ingest: IngestStats,
    commands: CommandStats,
    login: msgspec.Struct,
    engine: msgspec.Struct,
    effect_queue: msgspec.Struct,
    campaigns: CampaignStats,
    messenger: msgspec.Struct,
    rules: msgspec.Struct,
    analysis: AnalysisStats,
    live: LiveStats,
    flags: msgspec.Struct,
) -> list[Collector]:
    """A collector for each part's counters."""
    return [
        Numbered(names.STORE, store),
        Numbered(names.BROKER, lambda: broker),
        Labelled("terrazzo_broker_dropped_total", "reason", lambda: broker.dropped),
        Numbered(names.INGEST, lambda: ingest),
        Labelled("terrazzo_ingest_rejects_total", "kind", lambda: ingest.rejects),
        Numbered(names.MAPPING, lambda: engine),
        Numbered(names.EFFECTS, lambda: effect_queue),
        Numbered(names.MESSENGER, lambda: messenger),
        Numbered(names.RULES, lambda: rules),
        Numbered(names.CAMPAIGNS, lambda: campaigns),
        Labelled("terrazzo_campaign_terminals_total", "state", lambda: campaigns.terminals),
        Labelled("terrazzo_commands_total", "state", lambda: commands.steps),
        Numbered(names.LOGIN, lambda: login),
        Numbered(names.ANALYSIS, lambda: analysis),
        Numbered(names.LIVE, lambda: live),
        Numbered(names.FLAGS, lambda: flags),
    ]
