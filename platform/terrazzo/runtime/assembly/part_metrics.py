"""Which of the parts' counters ``/metrics`` shows, and how it calls them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from prometheus_client.registry import Collector

from terrazzo.analysis.analysis import AnalysisStats
from terrazzo.campaigns.runner import CampaignStats
from terrazzo.commands.dispatcher import CommandStats
from terrazzo.ingest.commit_group import IngestStats
from terrazzo.live.stats import GAUGES, LiveStats
from terrazzo.objects.flag_watch import FLAG_GAUGES
from terrazzo.ports.store import STORE_GAUGES, StoreStats
from terrazzo.runtime.assembly.collectors import Labelled, Numbered
from terrazzo_broker.stats import Stats

_BROKER_GAUGES = frozenset({"connections", "clients", "subscriptions", "backlog", "backlog_bytes"})
_INGEST_GAUGES = frozenset({"backlog", "backlog_bytes", "commit_seconds_max"})


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
        Numbered("terrazzo_store", lambda: _numbers(store()), gauges=STORE_GAUGES),
        Numbered("terrazzo_broker", broker.counters, gauges=_BROKER_GAUGES),
        Labelled("terrazzo_broker_dropped", "reason", lambda: broker.dropped),
        Numbered("terrazzo_ingest", lambda: _numbers(ingest), gauges=_INGEST_GAUGES),
        Labelled("terrazzo_ingest_rejects", "kind", lambda: ingest.rejects),
        Numbered("terrazzo_mapping", lambda: _numbers(engine)),
        Numbered("terrazzo_effects", lambda: _numbers(effect_queue), gauges=frozenset({"waiting"})),
        Numbered("terrazzo_messenger", lambda: _numbers(messenger)),
        Numbered("terrazzo_rules", lambda: _numbers(rules)),
        Numbered("terrazzo_campaigns", lambda: _numbers(campaigns), gauges=frozenset({"running"})),
        Labelled("terrazzo_campaign_terminals", "state", lambda: campaigns.terminals),
        Labelled("terrazzo_commands", "state", lambda: commands.steps),
        Numbered("terrazzo_login", lambda: _numbers(login)),
        Numbered("terrazzo_analysis", lambda: _numbers(analysis)),
        Numbered("terrazzo_live", lambda: _numbers(live), gauges=GAUGES),
        Numbered("terrazzo_flags", lambda: _numbers(flags), gauges=FLAG_GAUGES),
    ]


def _numbers(stats: msgspec.Struct) -> dict[str, float]:
    return {name: value for name, value in msgspec.structs.asdict(stats).items() if isinstance(value, int | float)}
