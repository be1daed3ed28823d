"""What people see while it happens: live frames, events and labels, the flags of objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from terrazzo.config.sections import Config
from terrazzo.events.events import EventRecords
from terrazzo.events.labels import LabelRecords
from terrazzo.live.event_source import EventSource
from terrazzo.live.frame_sender import FrameSender
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.sources import CommandSource, RecordSource, TerminalSource
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.objects.flag_watch import FlagWatch
from terrazzo.objects.flags import ObjectFlagReader
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.terminal_messaging import TerminalMessaging
from terrazzo.runtime.lifetime import Lifetime


@dataclass(frozen=True, slots=True)
class Views:
    """What listens to the other parts and shows what it heard."""

    live: LiveHub
    events: EventRecords
    labels: LabelRecords
    flags: ObjectFlagReader
    flag_watch: FlagWatch


def start_views(
    config: Config,
    lifetime: Lifetime,
    *,
    metadata: Metadata,
    mapper: ReportMapper,
    messaging: TerminalMessaging,
    clock: Callable[[], int],
) -> Views:
    """Listens to everything, and starts the tasks that tell it."""
    live = _start_live(config, lifetime, metadata, messaging, clock)
    events = EventRecords(metadata.database, zone=config.zone, clock=clock)
    happenings = EventSource(live, zone=config.zone, clock=clock)
    mapper.effect_queue.happened.listen(happenings.on_happened)
    events.changes.listen(happenings.on_happened)
    labels = LabelRecords(metadata.database, mapper, zone=config.zone)
    boot_timeout_s = config.limits.boot_timeout_s
    flags = ObjectFlagReader(
        metadata.registry, messaging.bus, mapper.engine, boot_timeout_s=boot_timeout_s, clock=clock
    )
    watch = FlagWatch(flags, live, metadata.registry, tasks=lifetime.tasks, zone=config.zone, clock=clock)
    _start_flag_watch(watch, lifetime, metadata, mapper, messaging)
    return Views(live, events, labels, flags, watch)


def _start_live(
    config: Config, lifetime: Lifetime, metadata: Metadata, messaging: TerminalMessaging, clock: Callable[[], int]
) -> LiveHub:
    """What the parts tell to whoever has subscribed, and the task that sends it."""
    registry, zone, limits = metadata.registry, config.zone, config.limits
    kept = LiveLimits(frames=limits.live_frames, bytes=limits.live_bytes, resume_s=limits.live_resume_s)
    live = LiveHub(registry, started_us=clock(), limits=kept)
    frame_sender = FrameSender(live, lifetime.tasks, is_behind=lambda: messaging.ingest.is_behind)
    frame_sender.start()
    lifetime.push_async_callback(frame_sender.stop)
    terminals = TerminalSource(live, zone=zone)
    messaging.ingest.records.listen(RecordSource(live, registry, zone=zone).on_records)
    messaging.presence.changes.listen(terminals.on_presence)
    registry.terminal_changes.listen(terminals.on_record)
    messaging.commands.steps.listen(CommandSource(live, zone=zone).on_step, wanted=lambda: live.is_wanted)
    return live


def _start_flag_watch(
    watch: FlagWatch, lifetime: Lifetime, metadata: Metadata, mapper: ReportMapper, messaging: TerminalMessaging
) -> None:
    """The task that tells what changed of objects' flags."""
    messaging.presence.changes.listen(watch.on_presence)
    messaging.ingest.records.listen(watch.on_records)
    mapper.effect_queue.happened.listen(watch.on_happened)
    metadata.entities.objects.changes.listen(watch.on_object)
    metadata.entities.mappings.changes.listen(watch.on_mapping)
    watch.start()
    lifetime.push_async_callback(watch.stop)
