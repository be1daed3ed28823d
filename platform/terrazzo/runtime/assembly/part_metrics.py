"""The parts' counters that ``/metrics`` shows, and their names there."""

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
from terrazzo.runtime.assembly.collectors import CounterCollector, LabelledCollector
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
        CounterCollector("terrazzo_store", lambda: _numbers(store()), gauges=STORE_GAUGES),
        CounterCollector("terrazzo_broker", broker.counters, gauges=_BROKER_GAUGES),
        LabelledCollector("terrazzo_broker_dropped", "reason", lambda: broker.dropped),
        CounterCollector("terrazzo_ingest", lambda: _numbers(ingest), gauges=_INGEST_GAUGES),
        LabelledCollector("terrazzo_ingest_rejects", "kind", lambda: ingest.rejects),
        CounterCollector("terrazzo_mapping", lambda: _numbers(engine)),
        CounterCollector("terrazzo_effects", lambda: _numbers(effect_queue), gauges=frozenset({"waiting"})),
        CounterCollector("terrazzo_messenger", lambda: _numbers(messenger)),
        CounterCollector("terrazzo_rules", lambda: _numbers(rules)),
        CounterCollector("terrazzo_campaigns", lambda: _numbers(campaigns), gauges=frozenset({"running"})),
        LabelledCollector("terrazzo_campaign_terminals", "state", lambda: campaigns.terminals),
        LabelledCollector("terrazzo_commands", "state", lambda: commands.steps),
        CounterCollector("terrazzo_login", lambda: _numbers(login)),
        CounterCollector("terrazzo_analysis", lambda: _numbers(analysis)),
        CounterCollector("terrazzo_live", lambda: _numbers(live), gauges=GAUGES),
        CounterCollector("terrazzo_flags", lambda: _numbers(flags), gauges=FLAG_GAUGES),
    ]


def _numbers(stats: msgspec.Struct) -> dict[str, float]:
    return {name: value for name, value in msgspec.structs.asdict(stats).items() if isinstance(value, int | float)}
