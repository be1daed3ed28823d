"""Which of the parts' counters ``/metrics`` shows, and how it calls them."""

from __future__ import annotations

import msgspec
from prometheus_client.registry import Collector

from terrazzo.analysis.analysis import AnalysisStats
from terrazzo.campaigns.runner import CampaignStats
from terrazzo.commands.dispatcher import CommandStats
from terrazzo.ingest.commit_group import IngestStats
from terrazzo.live.stats import LiveStats
from terrazzo.runtime.assembly import metric_names as names
from terrazzo.runtime.assembly.collectors import Labelled, Numbered
from terrazzo_broker.stats import Stats


def part_metrics(
    *,
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
        Numbered(names.BROKER, broker),
        Labelled("terrazzo_broker_dropped_total", "reason", lambda: broker.dropped),
        Numbered(names.INGEST, ingest),
        Labelled("terrazzo_ingest_rejects_total", "kind", lambda: ingest.rejects),
        Numbered(names.MAPPING, engine),
        Numbered(names.EFFECTS, effect_queue),
        Numbered(names.MESSENGER, messenger),
        Numbered(names.RULES, rules),
        Numbered(names.CAMPAIGNS, campaigns),
        Labelled("terrazzo_campaign_terminals_total", "state", lambda: campaigns.terminals),
        Labelled("terrazzo_commands_total", "state", lambda: commands.steps),
        Numbered(names.LOGIN, login),
        Numbered(names.ANALYSIS, analysis),
        Numbered(names.LIVE, live),
        Numbered(names.FLAGS, flags),
    ]
