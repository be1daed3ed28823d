"""The lines to terminals: their reports in, commands and firmware out. What happens on them others listen to."""

from __future__ import annotations

from dataclasses import dataclass

from terrazzo.access.key_file import load_key
from terrazzo.assembly.metadata import Metadata
from terrazzo.assembly.objects import Objects
from terrazzo.campaigns.links import KEY_BYTES, KEY_FILE, LINK_GRACE_S, SignedLinks
from terrazzo.commands.dispatcher import Commands
from terrazzo.commands.journal import Journal
from terrazzo.config import Config
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.files.library import FileLibrary
from terrazzo.ingest.answers import StoredAnswers
from terrazzo.ingest.intake import Intake
from terrazzo.ingest.report import Seals
from terrazzo.store import TimeSeriesStore
from terrazzo.terminals.presence import PresenceBook


@dataclass(frozen=True, slots=True)
class Lines:
    """What stands between the broker and the rest."""

    presence: PresenceBook
    seals: Seals
    bus: EmbeddedBus
    intake: Intake
    links: SignedLinks
    commands: Commands


def new_lines(
    config: Config, *, store: TimeSeriesStore, metadata: Metadata, files: FileLibrary, objects: Objects
) -> Lines:
    """Nothing runs on them yet."""
    presence, seals = PresenceBook(), Seals()
    bus = EmbeddedBus(metadata.registry, presence, seals)
    ahead_s = config.limits.clock_ahead_s
    intake = Intake(store, bus, clock_ahead_s=ahead_s, shaper=objects.shaper, marks=objects.marks)
    links = _new_links(config, files)
    commands = Commands(
        Journal(metadata.database),
        registry=metadata.registry,
        bus=bus,
        configurations=metadata.entities.configurations,
        links=links,
        answers=StoredAnswers(store),
        expiry_s=config.command.expiry_s,
    )
    intake.listen_answers(commands.on_answer)
    return Lines(presence, seals, bus, intake, links, commands)


def _new_links(config: Config, files: FileLibrary) -> SignedLinks:
    """Where terminals fetch stored files; a command may wait before the download begins."""
    key = load_key(config.data_dir / KEY_FILE, size=KEY_BYTES)
    url = config.http.public_url or f"http://{config.http.host}:{config.http.port}"
    return SignedLinks(files, key=key, base_url=url, lifetime_s=config.command.expiry_s + LINK_GRACE_S)
