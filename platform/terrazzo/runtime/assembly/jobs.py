"""Makes the jobs that take long: firmware campaigns and replays, which survive a restart, and rows of exports."""

from __future__ import annotations

from collections.abc import Callable

from terrazzo.api.operations.history.export_process import COMMAND
from terrazzo.campaigns.runner import CampaignRunner
from terrazzo.campaigns.terminal_records import CampaignTerminalRecords
from terrazzo.config.sections import Config
from terrazzo.mapping.replay.journal import ReplayJournal
from terrazzo.mapping.replay.run import ReplayParts
from terrazzo.mapping.replay.runner import ReplayRunner
from terrazzo.mapping.replay.running_objects import RunningObjects
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.objects import Objects
from terrazzo.runtime.assembly.terminal_messaging import TerminalMessaging
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.work_process import WorkProcess


def new_campaigns(
    lifetime: Lifetime,
    *,
    store: TimeSeriesStore,
    metadata: Metadata,
    messaging: TerminalMessaging,
    clock: Callable[[], int],
) -> CampaignRunner:
    """The campaign runner, listening to reports, presence, commands and downloads; not started yet."""
    terminal_records = CampaignTerminalRecords(metadata.database)
    campaigns = CampaignRunner(
        metadata.entities.campaigns,
        terminal_records,
        registry=metadata.registry,
        commands=messaging.commands,
        store=store,
        tasks=lifetime.tasks,
        clock=clock,
    )
    messaging.ingest.records.listen(campaigns.on_records)
    messaging.presence.changes.listen(campaigns.on_presence)
    messaging.commands.steps.listen(campaigns.on_step, wanted=lambda: campaigns.is_wanted)
    messaging.links.downloads.listen(campaigns.on_download)
    return campaigns


def start_replays(
    config: Config,
    lifetime: Lifetime,
    *,
    store: TimeSeriesStore,
    metadata: Metadata,
    objects: Objects,
    messaging: TerminalMessaging,
    clock: Callable[[], int],
) -> ReplayRunner:
    """The replay runner, started; replays that an earlier run left unfinished begin anew."""
    live = RunningObjects(objects.mapper, messaging.ingest)
    journal = ReplayJournal(metadata.database, zone=config.zone)
    parts = ReplayParts(
        store,
        metadata.database,
        live,
        objects.analysis,
        clock,
        metadata.event_quotas,
        metadata.registry,
        messaging.reader,
    )
    replays = ReplayRunner(journal, parts, lifetime.tasks)
    replays.start()
    lifetime.push_async_callback(replays.stop)
    return replays


def open_export_process(lifetime: Lifetime) -> WorkProcess:
    """What makes the rows of exports where there are many; it starts when it is asked."""
    process = WorkProcess(COMMAND, name="export rows")
    lifetime.push_async_callback(process.close)
    return process
