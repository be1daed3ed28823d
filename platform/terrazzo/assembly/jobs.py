"""Jobs that take a while and outlive a restart: campaigns on the lines, replays of objects."""

from __future__ import annotations

from terrazzo.assembly.lifetime import Lifetime
from terrazzo.assembly.lines import Lines
from terrazzo.assembly.metadata import Metadata
from terrazzo.assembly.objects import Objects
from terrazzo.campaigns.board import Board
from terrazzo.campaigns.conductor import Campaigns
from terrazzo.config import Config
from terrazzo.replay.journal import Journal
from terrazzo.replay.live import Live
from terrazzo.replay.replays import Replays
from terrazzo.replay.run import Parts
from terrazzo.store import TimeSeriesStore
from terrazzo.times import now_us


def new_campaigns(*, store: TimeSeriesStore, metadata: Metadata, lines: Lines) -> Campaigns:
    """Campaigns, which hear of reports, connections, commands and downloads; they don't run yet."""
    board = Board(metadata.database)
    campaigns = Campaigns(metadata.entities.campaigns, board, commands=lines.commands, store=store)
    lines.intake.listen(campaigns.on_records)
    lines.presence.watch(campaigns.on_presence)
    lines.commands.listen(campaigns.on_step, wanted=lambda: campaigns.is_wanted)
    lines.links.listen(campaigns.on_download)
    return campaigns


def start_replays(
    config: Config, lifetime: Lifetime, *, store: TimeSeriesStore, metadata: Metadata, objects: Objects, lines: Lines
) -> Replays:
    """Replays; those that an earlier run left begin anew."""
    live = Live(objects.shaper, lines.intake, lines.bus)
    journal = Journal(metadata.database, zone=config.zone)
    replays = Replays(journal, Parts(store, metadata.database, live, objects.analysis, now_us))
    replays.start()
    lifetime.push_async_callback(replays.stop)
    return replays
