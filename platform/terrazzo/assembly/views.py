"""What people see while it happens: live frames, events and labels, the flags of objects."""

from __future__ import annotations

from dataclasses import dataclass

from terrazzo.assembly.lifetime import Lifetime
from terrazzo.assembly.lines import Lines
from terrazzo.assembly.metadata import Metadata
from terrazzo.config import Config
from terrazzo.happenings.events import EventBook
from terrazzo.happenings.labels import LabelBook
from terrazzo.live.happenings import HappeningSource
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.pump import Pump
from terrazzo.live.sources import CommandSource, RecordSource, TerminalSource
from terrazzo.mapping.shaper import Shaper
from terrazzo.objects.changes import FlagWatch
from terrazzo.objects.flags import FlagBook
from terrazzo.times import now_us


@dataclass(frozen=True, slots=True)
class Views:
    """What listens to the other parts and shows what it heard."""

    live: LiveHub
    events: EventBook
    labels: LabelBook
    flags: FlagBook
    flag_watch: FlagWatch


def start_views(config: Config, lifetime: Lifetime, *, metadata: Metadata, shaper: Shaper, lines: Lines) -> Views:
    """Listens to everything, and starts the tasks that tell it."""
    live = _start_live(config, lifetime, metadata, lines)
    events = EventBook(metadata.database, zone=config.zone)
    happenings = HappeningSource(live, zone=config.zone)
    shaper.outbox.listen(happenings.on_happened)
    events.listen(happenings.on_happened)
    labels = LabelBook(metadata.database, shaper, zone=config.zone)
    flags = FlagBook(metadata.registry, lines.bus, shaper.engine, boot_timeout_s=config.limits.boot_timeout_s)
    watch = FlagWatch(flags, live, metadata.registry, zone=config.zone)
    _start_flag_watch(watch, lifetime, metadata, shaper, lines)
    return Views(live, events, labels, flags, watch)


def _start_live(config: Config, lifetime: Lifetime, metadata: Metadata, lines: Lines) -> LiveHub:
    """What the parts tell to whoever has subscribed, and the task that sends it."""
    registry, zone, limits = metadata.registry, config.zone, config.limits
    kept = LiveLimits(frames=limits.live_frames, bytes=limits.live_bytes, resume_s=limits.live_resume_s)
    live = LiveHub(registry, started_us=now_us(), limits=kept)
    pump = Pump(live, is_behind=lambda: lines.intake.is_behind)
    pump.start()
    lifetime.push_async_callback(pump.stop)
    terminals = TerminalSource(live, zone=zone)
    lines.intake.listen(RecordSource(live, registry, zone=zone).on_records)
    lines.presence.watch(terminals.on_presence)
    registry.watch(terminals.on_record)
    lines.commands.listen(CommandSource(live, zone=zone).on_step, wanted=lambda: live.is_wanted)
    return live


def _start_flag_watch(watch: FlagWatch, lifetime: Lifetime, metadata: Metadata, shaper: Shaper, lines: Lines) -> None:
    """The task that tells what changed of objects' flags."""
    lines.presence.watch(watch.on_presence)
    lines.intake.listen(watch.on_records)
    shaper.outbox.listen(watch.on_happened)
    metadata.entities.objects.watch(watch.on_object)
    metadata.entities.mappings.watch(watch.on_mapping)
    watch.start()
    lifetime.push_async_callback(watch.stop)
