"""What becomes of reports: objects' records, events and labels, what rules tell of them, analyses."""

from __future__ import annotations

from dataclasses import dataclass

from terrazzo.analysis.analysis import Analysis
from terrazzo.analysis.late import LateMarks
from terrazzo.assembly.lifetime import Lifetime
from terrazzo.assembly.metadata import Metadata
from terrazzo.config import Config
from terrazzo.mapping.collected import CollectedFeed
from terrazzo.mapping.ledger import Ledger
from terrazzo.mapping.outbox import Outbox
from terrazzo.mapping.shaper import Shaper
from terrazzo.messenger.messenger import Messenger
from terrazzo.rules.ledger import NoticeLedger
from terrazzo.rules.teller import Teller
from terrazzo.store import TimeSeriesStore
from terrazzo.times import DAY_US

_ANALYSIS_S = 1.0  # between looks for periods that are over


@dataclass(frozen=True, slots=True)
class Objects:
    """What shapes reports, and what follows from that; ``marks`` is what the ingest leaves for the analyses."""

    shaper: Shaper
    teller: Teller
    marks: LateMarks
    analysis: Analysis


async def open_objects(
    config: Config, lifetime: Lifetime, *, store: TimeSeriesStore, metadata: Metadata, messenger: Messenger
) -> Objects:
    """Before the stop, what is committed reaches the database, if it answers.

    Raises:
        StoreUnavailable, Unavailable: the store or the database doesn't answer.
    """
    ledger = Ledger(metadata.database)
    outbox = Outbox(ledger)
    teller = await _open_teller(config, lifetime, metadata, messenger)
    ledger.join(teller.on_effects)  # rules hear of events and labels in the transaction that writes them
    outbox.listen(teller.on_happened)
    lifetime.push_async_callback(outbox.stop)
    shaper = await Shaper.open(store, metadata.entities, outbox)
    collected = CollectedFeed(metadata.database, metadata.entities, shaper)
    await collected.start()
    lifetime.push_async_callback(collected.stop)
    marks = LateMarks()
    analysis = await _open_analysis(config, lifetime, store, metadata, marks)
    return Objects(shaper, teller, marks, analysis)


async def _open_teller(config: Config, lifetime: Lifetime, metadata: Metadata, messenger: Messenger) -> Teller:
    teller = Teller(NoticeLedger(metadata.database), messenger, metadata.entities.objects, zone=config.zone)
    await teller.load(metadata.entities.rules)
    teller.start()
    lifetime.push_async_callback(teller.stop)
    return teller


async def _open_analysis(
    config: Config, lifetime: Lifetime, store: TimeSeriesStore, metadata: Metadata, marks: LateMarks
) -> Analysis:
    """Statistics, calculations and balances, which work while the platform runs."""
    analysis = await Analysis.open(
        store,
        metadata.database,
        metadata.entities,
        marks=marks,
        zone=config.zone,
        retention_us=config.store.retention_days * DAY_US,
    )
    lifetime.repeat("analysis", _ANALYSIS_S, analysis.work)
    return analysis
