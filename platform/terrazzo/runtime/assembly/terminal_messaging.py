"""Makes what stands between the broker and the other parts: presence, ingest, commands, firmware downloads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from terrazzo.campaigns.download_links import KEY_BYTES, KEY_FILE, LINK_GRACE_S, SignedLinks
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.commands.journal import CommandJournal
from terrazzo.config.sections import Config
from terrazzo.configurations.records import ConfigRecords
from terrazzo.configurations.sender import ConfigSender
from terrazzo.crypto.key_file import load_key
from terrazzo.diagnostics.journal import RefusalJournal
from terrazzo.diagnostics.refusal_file import FILE_NAME, RefusalFile
from terrazzo.domain.actor import Role
from terrazzo.domain.answers import StoredAnswers
from terrazzo.domain.registry import Registry
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.files.library import FileLibrary
from terrazzo.ingest.decoders import PayloadDecoders
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.long_reports import json_of_long
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_reader import ReportReader
from terrazzo.ingest.report_tag import Seals
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.objects import Objects
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.tracing import TracingParts
from terrazzo.terminals.last_seen import LastSeenFile
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.terminals.presence_log import PresenceLog
from terrazzo.terminals.series_use import FILE_NAME as SIZES_FILE
from terrazzo.terminals.series_use import SeriesUse


class TerminalMessaging(msgspec.Struct, frozen=True):
    """The parts between the broker and the rest; others listen to what they tell."""

    presence: PresenceRegister
    seals: Seals
    bus: EmbeddedBus
    ingest: IngestPipeline
    reader: ReportReader
    links: SignedLinks
    commands: CommandDispatcher
    refusals: RefusalJournal
    configurations: ConfigSender
    presence_log: PresenceLog
    series_use: SeriesUse

    def on_ready(self, uid: str) -> None:
        """A terminal has connected and subscribed to its commands."""
        self.commands.on_ready(uid)
        self.configurations.on_ready(uid)


def new_messaging(
    config: Config,
    lifetime: Lifetime,
    *,
    store: TimeSeriesStore,
    metadata: Metadata,
    files: FileLibrary,
    objects: Objects,
    clock: Callable[[], int],
    intake_limits: IngestLimits,
    tracing: TracingParts,
) -> TerminalMessaging:
    """Makes the parts and wires them to one another; nothing is started yet."""
    presence, seals = PresenceRegister(), Seals()
    last_seen = LastSeenFile(config.data_dir / "last-seen", metadata.registry)
    lifetime.callback(last_seen.close)
    presence.keep_in(last_seen, metadata.registry)
    bus = EmbeddedBus(metadata.registry, presence, seals)
    ahead_s = config.limits.clock_ahead_s
    mapper, marks = objects.mapper, objects.marks
    decoders = PayloadDecoders(config.ingest.decoders, cpu_ms=config.ingest.decoder_ms)
    lifetime.push_async_callback(decoders.close)
    ingest = IngestPipeline(
        store,
        bus,
        tasks=lifetime.tasks,
        clock_ahead_s=ahead_s,
        limits=intake_limits,
        points=mapper.engine.catalogue.limits.points,
        mapper=mapper,
        marks=marks,
        terminal_series=config.limits.terminal_series,
        decoders=decoders,
        traces=tracing.commits,
    )
    reader = ReportReader(metadata.registry, decoders)
    links = _new_links(config, files, metadata.registry, clock)
    commands = CommandDispatcher(
        CommandJournal(metadata.database),
        registry=metadata.registry,
        bus=bus,
        configurations=metadata.entities.configurations,
        tasks=lifetime.tasks,
        links=links,
        answers=StoredAnswers(store, partial(json_of_long, reader.decoders)),
        expiry_s=config.command.expiry_s,
        upgrade_role=Role[config.command.upgrade_role.upper()],
        upgrade_details=config.command.upgrade_details,
        clock=clock,
        traces=tracing.commands,
    )
    ingest.answers.listen(commands.on_answer)
    file, most = RefusalFile(config.data_dir / FILE_NAME), config.limits.refusals
    refusals = RefusalJournal(metadata.registry, file, most=most, clock=clock)
    configurations = _new_config_sender(lifetime, metadata, bus, reader, clock)
    ingest.records.listen(configurations.on_records)
    log = PresenceLog(metadata.database, clock=clock)
    presence.changes.listen(log.on_presence)
    use = _new_series_use(config, store, metadata, ingest, clock)
    return TerminalMessaging(presence, seals, bus, ingest, reader, links, commands, refusals, configurations, log, use)


def _new_series_use(
    config: Config, store: TimeSeriesStore, metadata: Metadata, ingest: IngestPipeline, clock: Callable[[], int]
) -> SeriesUse:
    metadata.entities.companies.tells_sizes = lambda: store.has_sizes

    def stored() -> dict[int, int]:
        return {int(owner): size for owner, size in ingest.taken.stored_bytes().items() if owner.isdecimal()}

    return SeriesUse(
        store,
        metadata.registry,
        metadata.former_terminals,
        metadata.quotas.own,
        stored=stored,
        most_mib=config.limits.company_series_mib,
        file=config.data_dir / SIZES_FILE,
        clock=clock,
    )


def _new_config_sender(
    lifetime: Lifetime, metadata: Metadata, bus: EmbeddedBus, reader: ReportReader, clock: Callable[[], int]
) -> ConfigSender:
    records = ConfigRecords(metadata.database)
    read = reader.points_of
    sender = ConfigSender(metadata.registry, bus, records, lifetime.tasks, read_points=read, clock=clock)
    metadata.entities.configurations.changes.listen(sender.on_change)
    return sender


def _new_links(config: Config, files: FileLibrary, registry: Registry, clock: Callable[[], int]) -> SignedLinks:
    """The signed download links, valid as long as a command may wait, and ``LINK_GRACE_S`` more."""
    key = load_key(config.data_dir / KEY_FILE, size=KEY_BYTES)
    url = config.http.public_url or f"http{'s' if config.http.tls_cert else ''}://{config.http.host}:{config.http.port}"
    lifetime_s = config.command.expiry_s + LINK_GRACE_S
    return SignedLinks(files, key=key, base_url=url, lifetime_s=lifetime_s, terminal=registry.terminal, clock=clock)
