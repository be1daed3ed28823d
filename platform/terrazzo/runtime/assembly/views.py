"""Makes what shows users the present: live frames, events and labels, the flags of objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from terrazzo.attention.attention import Attention
from terrazzo.attention.disk_watch import LOOK_S as DISK_LOOK_S
from terrazzo.attention.disk_watch import DiskWatch
from terrazzo.attention.open_records import OpenRecords
from terrazzo.attention.terminal_census import TerminalStates
from terrazzo.config.sections import Config
from terrazzo.events.events import EventRecords
from terrazzo.events.expiry import LOOK_S, EventExpiry, EventExpiryStats
from terrazzo.events.labels import LabelRecords
from terrazzo.ingest.long_reports import json_of_long
from terrazzo.live.attention_source import TELL_S, AttentionSource
from terrazzo.live.diagnostic_source import DiagnosticSource
from terrazzo.live.event_source import EventSource
from terrazzo.live.frame_sender import FrameSender
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.long_frames import LongFrames
from terrazzo.live.sources import CommandSource, RecordSource, TerminalSource
from terrazzo.live.trace_source import TraceSource
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.objects.flag_watch import FlagWatch
from terrazzo.objects.flags import ObjectFlagReader
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.terminal_messaging import TerminalMessaging
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.terminals.tracing import TerminalTraces


class Views(msgspec.Struct, frozen=True):
    """The live hub, the records of events and labels, and the flags of objects."""

    live: LiveHub
    events: EventRecords
    expiry: EventExpiryStats
    labels: LabelRecords
    flags: ObjectFlagReader
    flag_watch: FlagWatch
    attention: Attention
    traces: TerminalTraces


def start_views(
    config: Config,
    lifetime: Lifetime,
    *,
    metadata: Metadata,
    mapper: ReportMapper,
    messaging: TerminalMessaging,
    clock: Callable[[], int],
) -> Views:
    """Makes the views, has them listen to the other parts, and starts their tasks."""
    live = _start_live(config, lifetime, metadata, messaging, clock)
    events = EventRecords(metadata.database, zone=config.zone, clock=clock, quotas=metadata.event_quotas)
    event_source = EventSource(live, zone=config.zone, clock=clock)
    mapper.effect_queue.happened.listen(event_source.on_happened)
    events.changes.listen(event_source.on_happened)
    expiry = EventExpiry(metadata.database, clock=clock)
    expiry.changes.listen(event_source.on_happened)
    expiring = lifetime.tasks.repeat("event expiry", LOOK_S, expiry.run, OnFailure.RESTART)
    lifetime.push_async_callback(expiring.stop)
    labels = LabelRecords(metadata.database, mapper, zone=config.zone)
    boot_timeout_s = config.limits.boot_timeout_s
    flags = ObjectFlagReader(
        metadata.registry, messaging.bus, mapper.engine, boot_timeout_s=boot_timeout_s, clock=clock
    )
    watch = FlagWatch(flags, live, metadata.registry, tasks=lifetime.tasks, zone=config.zone, clock=clock)
    _start_flag_watch(watch, lifetime, metadata, mapper, messaging)
    attention = _start_attention(config, lifetime, metadata, messaging, clock)
    _start_notices(AttentionSource(live), lifetime, metadata, mapper, messaging, (events, expiry))
    traces = _new_traces(live, lifetime, metadata, messaging, clock)
    return Views(live, events, expiry.stats, labels, flags, watch, attention, traces)


def _new_traces(
    live: LiveHub, lifetime: Lifetime, metadata: Metadata, messaging: TerminalMessaging, clock: Callable[[], int]
) -> TerminalTraces:
    traces, source = TerminalTraces(messaging.bus, clock=clock), TraceSource(live)
    traces.packets.listen(source.on_packet)
    traces.ended.listen(source.on_end)
    traces.follow(messaging.presence.changes)
    metadata.registry.terminal_changes.listen(traces.on_terminal)
    lifetime.callback(traces.close)
    return traces


def _start_attention(
    config: Config, lifetime: Lifetime, metadata: Metadata, messaging: TerminalMessaging, clock: Callable[[], int]
) -> Attention:
    """What needs a person; only the disk is looked at without being asked."""
    presence = messaging.presence
    states = TerminalStates(presence.heard, presence.ended, messaging.refusals.last_refused)
    out = metadata.registry.out_of_service
    records = OpenRecords(metadata.database, metadata.quotas, metadata.event_quotas, out_of_service=out)
    disk = DiskWatch(config.data_dir, clock=clock)
    looking = lifetime.tasks.repeat("disk space", DISK_LOOK_S, disk.look, OnFailure.RESTART)
    lifetime.push_async_callback(looking.stop)
    attention = Attention(metadata.registry, states, records, disk, messaging.series_use, clock=clock)
    metadata.registry.service_changes.listen(attention.forget)
    metadata.entities.companies.changes.listen(lambda _changed: attention.forget())  # what it may have
    return attention


def _start_notices(
    source: AttentionSource,
    lifetime: Lifetime,
    metadata: Metadata,
    mapper: ReportMapper,
    messaging: TerminalMessaging,
    kept: tuple[EventRecords, EventExpiry],
) -> None:
    """Has the notices of what needs a person listen to what changes it, and starts them."""
    source.follow(messaging.presence.changes)
    metadata.registry.terminal_changes.listen(source.on_record)
    registry = metadata.registry

    def on_service(uids: Sequence[str]) -> None:
        source.on_service(each for each in map(registry.terminal, uids) if each is not None)

    registry.service_changes.listen(on_service)
    messaging.refusals.changes.listen(source.on_refusals, wanted=source.is_wanted)
    messaging.commands.steps.listen(source.on_step, wanted=source.is_wanted)
    mapper.effect_queue.happened.listen(source.on_happened)
    for each in kept:
        each.changes.listen(source.on_happened)
    telling = lifetime.tasks.repeat("attention told", TELL_S, source.tell, OnFailure.RESTART)
    lifetime.push_async_callback(telling.stop)


def _start_live(
    config: Config, lifetime: Lifetime, metadata: Metadata, messaging: TerminalMessaging, clock: Callable[[], int]
) -> LiveHub:
    """The live hub, fed by what the parts tell, and the started task that sends its frames."""
    registry, zone, limits = metadata.registry, config.zone, config.limits
    kept = LiveLimits(
        frames=limits.live_frames, bytes=limits.live_bytes, feeds=limits.live_feeds, resume_s=limits.live_resume_s
    )
    live = LiveHub(registry, started_us=clock(), limits=kept)
    frame_sender = FrameSender(live, lifetime.tasks, is_behind=lambda: messaging.ingest.is_behind)
    frame_sender.start()
    lifetime.push_async_callback(frame_sender.stop)
    terminals = TerminalSource(live, zone=zone)
    long = LongFrames(live, partial(json_of_long, messaging.reader.decoders))
    lifetime.push_async_callback(lifetime.tasks.spawn("live reports", long.work, OnFailure.RESTART).stop)
    messaging.ingest.records.listen(RecordSource(live, registry, zone=zone, long=long).on_records)

    def on_feeds() -> None:
        messaging.presence.changes.set_listening(terminals.on_presence, is_on=live.is_wanted)

    live.feed_changes.listen(on_feeds)
    diagnostics = DiagnosticSource(live, zone=zone)
    messaging.refusals.changes.listen(diagnostics.on_refusals, wanted=diagnostics.is_wanted)
    registry.terminal_changes.listen(terminals.on_record)
    messaging.commands.steps.listen(CommandSource(live, zone=zone).on_step, wanted=lambda: live.is_wanted)
    return live


def _start_flag_watch(
    watch: FlagWatch, lifetime: Lifetime, metadata: Metadata, mapper: ReportMapper, messaging: TerminalMessaging
) -> None:
    """Has the flag watch listen to what may change a flag, and starts it."""
    messaging.presence.changes.listen(watch.on_presence)
    messaging.ingest.records.listen(watch.on_records)
    mapper.effect_queue.happened.listen(watch.on_happened)
    metadata.entities.objects.changes.listen(watch.on_object)
    metadata.entities.mappings.changes.listen(watch.on_mapping)
    mapper.maker.read.listen(lambda mapping_id: watch.on_read(mapper.engine.catalogue.objects_of_mapping(mapping_id)))
    watch.start()
    lifetime.push_async_callback(watch.stop)
