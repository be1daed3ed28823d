"""Whoever searches the code for a metric finds the line that defines it; no number that a part counts is forgotten."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import terrazzo
from terrazzo.access.password_reset import ResetStats
from terrazzo.access.refusals import UserLoginStats
from terrazzo.access.single_sign_on import SsoStats
from terrazzo.analysis.analysis import AnalysisStats
from terrazzo.attention.attention import AttentionStats
from terrazzo.campaigns.runner import CampaignStats
from terrazzo.commands.dispatcher import CommandStats
from terrazzo.configurations.sender import ConfigStats
from terrazzo.diagnostics.journal import RefusalStats
from terrazzo.events.expiry import EventExpiryStats
from terrazzo.ingest.commit_group import IngestStats
from terrazzo.ingest.decoders import DecoderStats
from terrazzo.live.stats import LiveStats
from terrazzo.mapping.effect_queue import EffectQueueStats
from terrazzo.mapping.engine import MappingStats
from terrazzo.messenger.project_sender import SenderStats
from terrazzo.metadata.event_quotas import EventQuotaStats
from terrazzo.metadata.quotas import QuotaStats
from terrazzo.metadata.retention import RetentionStats
from terrazzo.objects.flag_watch import FlagStats
from terrazzo.ports.bridge import BridgeStatus
from terrazzo.ports.store import StoreStats
from terrazzo.rules.commander import CommandStats as RuleCommandStats
from terrazzo.rules.notifier import NotifierStats
from terrazzo.rules.watch import WatchStats
from terrazzo.runtime.assembly import bridge_metrics, metric_names, screen_metric_names
from terrazzo.runtime.assembly.part_metrics import kept_metrics, part_metrics
from terrazzo.terminals.former_data import FormerDataStats
from terrazzo.terminals.login import LoginStats
from terrazzo.terminals.presence_log import PresenceLogStats
from terrazzo.terminals.provisioning import ProvisionStats
from terrazzo.terminals.remote_access import RemoteAccessStats
from terrazzo.terminals.series_use import SeriesUseStats
from terrazzo_broker.stats import Stats

ROOT = Path(terrazzo.__file__).parent
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py")))

PARTS: dict[str, tuple[type[Any], Mapping[str, metric_names.Figure]]] = {
    "store": (StoreStats, metric_names.STORE),
    "broker": (Stats, metric_names.BROKER),
    "ingest": (IngestStats, metric_names.INGEST),
    "engine": (MappingStats, metric_names.MAPPING),
    "effect_queue": (EffectQueueStats, metric_names.EFFECTS),
    "messenger": (SenderStats, metric_names.MESSENGER),
    "rules": (NotifierStats, metric_names.RULES),
    "rule_watch": (WatchStats, metric_names.RULE_WATCH),
    "rule_commands": (RuleCommandStats, metric_names.RULE_COMMANDS),
    "campaigns": (CampaignStats, metric_names.CAMPAIGNS),
    "commands": (CommandStats, metric_names.COMMANDS),
    "configurations": (ConfigStats, metric_names.CONFIGURATIONS),
    "login": (LoginStats, metric_names.LOGIN),
    "remote_access": (RemoteAccessStats, bridge_metrics.REMOTE_ACCESS),
    "provisioning": (ProvisionStats, metric_names.PROVISIONING),
    "refusals": (RefusalStats, metric_names.REFUSALS),
    "user_login": (UserLoginStats, metric_names.USER_LOGIN),
    "single_sign_on": (SsoStats, metric_names.SINGLE_SIGN_ON),
    "password_resets": (ResetStats, metric_names.PASSWORD_RESETS),
    "analysis": (AnalysisStats, metric_names.ANALYSIS),
    "live": (LiveStats, metric_names.LIVE),
    "former": (FormerDataStats, metric_names.FORMER_DATA),
    "flags": (FlagStats, metric_names.FLAGS),
    "quotas": (QuotaStats, metric_names.QUOTAS),
    "event_quotas": (EventQuotaStats, metric_names.EVENT_QUOTAS),
}
KEPT: dict[str, tuple[type[Any], Mapping[str, metric_names.Figure]]] = {
    "event_expiry": (EventExpiryStats, metric_names.EVENT_EXPIRY),
    "retention": (RetentionStats, metric_names.RETENTION),
    "decoders": (DecoderStats, metric_names.DECODERS),
    "attention": (AttentionStats, screen_metric_names.ATTENTION),
    "presence_log": (PresenceLogStats, screen_metric_names.PRESENCE_LOG),
    "series_use": (SeriesUseStats, screen_metric_names.SERIES_USE),
}
EVERY = {**PARTS, **KEPT}
LABELLED = {"refused_queries"}  # the store's share of terrazzo_turns_refused_total, which has other parts' as well


def numbers(stats: Any) -> dict[str, float]:
    """The plain numbers that a part counts, by field."""
    fields = dataclasses.fields(stats) if dataclasses.is_dataclass(stats) else msgspec.structs.fields(type(stats))
    values = {field.name: getattr(stats, field.name) for field in fields}
    return {name: value for name, value in values.items() if isinstance(value, int | float) and name not in LABELLED}


class _Bridge:
    name = "north"

    def status(self) -> BridgeStatus:
        return BridgeStatus()


def exposed() -> Iterator[tuple[str, float]]:
    """The samples of a platform whose every number is another."""
    parts = {part: kind() for part, (kind, _) in EVERY.items()}
    counted = 0
    for stats in parts.values():
        for name in numbers(stats):
            counted += 1
            setattr(stats, name, counted)
    registry = CollectorRegistry()
    store = parts.pop("store")
    own = kept_metrics(**{part: parts.pop(part) for part in KEPT})
    own += part_metrics(store=lambda: store, **parts)
    for collector in [*own, *bridge_metrics.bridge_metrics([_Bridge()])]:
        registry.register(collector)
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        is_histogram = family.type == "histogram"  # whose samples have the name with an ending
        yield from ((family.name if is_histogram else sample.name, sample.value) for sample in family.samples)


@pytest.mark.parametrize("part", EVERY)
def test_every_number_has_a_metric_of_its_own(part: str) -> None:
    kind, names = EVERY[part]
    assert sorted(each.field for each in names.values()) == sorted(numbers(kind()))


def test_every_metric_is_written_out_once() -> None:
    found = dict(exposed())
    assert len(found) > len([name for _, names in EVERY.values() for name in names])
    assert {name: SOURCE.count(f'"{name}"') for name in found} == dict.fromkeys(found, 1)


def test_every_metric_shows_the_number_that_it_is_named_after() -> None:
    values = dict(exposed())
    wanted = [name for _, names in EVERY.values() for name in names]
    assert [values[name] for name in wanted] == list(range(1, len(wanted) + 1))
