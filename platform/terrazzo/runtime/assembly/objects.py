"""Makes what works on reports: the mapping to objects' records, events and labels, the rules, the analyses."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from terrazzo.analysis.analysis import Analysis
from terrazzo.analysis.late_records import LateMarks
from terrazzo.config.sections import Config
from terrazzo.domain.payload import PointLimits
from terrazzo.mapping.catalogue import MappingLimits
from terrazzo.mapping.effect_queue import EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.offline_data import OfflineDataFeed
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.messenger.messenger import Messenger
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import OnFailure
from terrazzo.rules.names import SubjectNames
from terrazzo.rules.notice_store import NoticeStore
from terrazzo.rules.notifier import RuleNotifier
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.terminals.series_retention import kept_us

_ANALYSIS_S = 1.0  # between looks for periods that are over


class Objects(msgspec.Struct, frozen=True):
    """The report mapper and what follows from its records; ``marks`` notes late records for the analyses."""

    mapper: ReportMapper
    notifier: RuleNotifier
    marks: LateMarks
    analysis: Analysis


async def open_objects(
    config: Config,
    lifetime: Lifetime,
    *,
    store: TimeSeriesStore,
    metadata: Metadata,
    messenger: Messenger,
    clock: Callable[[], int],
) -> Objects:
    """Opens mapping, rules and analyses, and starts their tasks.

    At the stop, events and labels that are committed are written to the database, if it answers.

    Raises:
        StoreUnavailable, Unavailable: the store or the database doesn't answer.
    """
    out = metadata.registry.out_of_service
    effect_writer = EffectWriter(metadata.database, quotas=metadata.event_quotas, out_of_service=out)
    effect_queue = EffectQueue(effect_writer, lifetime.tasks)
    notifier = await _open_notifier(config, lifetime, metadata, messenger, clock)
    effect_writer.join(notifier.on_effects)  # rules hear of events and labels in the transaction that writes them
    effect_queue.happened.listen(notifier.on_happened)
    metadata.registry.service_changes.listen(notifier.on_service)
    lifetime.push_async_callback(effect_queue.stop)
    mapper = await ReportMapper.open(store, metadata.entities, effect_queue, mapping_limits(config))
    mapper.maker.start(lifetime.tasks)
    lifetime.push_async_callback(mapper.maker.stop)
    collected = OfflineDataFeed(metadata.database, metadata.entities, mapper, lifetime.tasks)
    await collected.start()
    lifetime.push_async_callback(collected.stop)
    marks = LateMarks()
    analysis = await _open_analysis(config, lifetime, store, metadata, marks, clock)
    return Objects(mapper, notifier, marks, analysis)


def mapping_limits(config: Config) -> MappingLimits:
    """What one message may take, of the section ``limits``."""
    limits = config.limits
    points = PointLimits(name_chars=limits.point_name_chars, points=limits.points, text_chars=limits.variable_chars)
    return MappingLimits(points=points, mosaic_bytes=limits.mosaic_bytes)


async def _open_notifier(
    config: Config, lifetime: Lifetime, metadata: Metadata, messenger: Messenger, clock: Callable[[], int]
) -> RuleNotifier:
    notifier = RuleNotifier(
        NoticeStore(metadata.database, out_of_service=metadata.registry.out_of_service, clock=clock),
        messenger,
        SubjectNames(metadata.entities.objects, metadata.registry),
        tasks=lifetime.tasks,
        zone=config.zone,
        messages_per_hour=config.limits.rule_messages_per_hour,
        clock=clock,
    )
    await notifier.load(metadata.entities.rules)
    notifier.start()
    lifetime.push_async_callback(notifier.stop)
    return notifier


async def _open_analysis(
    config: Config,
    lifetime: Lifetime,
    store: TimeSeriesStore,
    metadata: Metadata,
    marks: LateMarks,
    clock: Callable[[], int],
) -> Analysis:
    """Opens statistics, calculations and balances, and starts the task that works on them."""
    analysis = await Analysis.open(
        store,
        metadata.database,
        metadata.entities,
        marks=marks,
        zone=config.zone,
        retention_us=kept_us(config.store.retention_days, metadata.registry, metadata.quotas.own),
        clock=clock,
    )
    working = lifetime.tasks.repeat("analysis", _ANALYSIS_S, analysis.work, OnFailure.RESTART)
    lifetime.push_async_callback(working.stop)
    return analysis
