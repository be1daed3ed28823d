"""What the pipeline needs of others: the broker's intake, who maps messages, and who makes notes about records."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from terrazzo.domain.payload import Points, Reject
from terrazzo.ingest.report_tag import ReportTag
from terrazzo.listeners import Listeners
from terrazzo.ports.store import NO_NOTES, Notes, Record


class IngestGateway(Protocol):
    """The broker's intake of terminals' publishes, as the pipeline needs it."""

    def pause_intake(self) -> None:
        """Stops reading from terminals."""

    def resume_intake(self) -> None:
        """Reads from terminals again."""

    def kick(self, client_id: str) -> bool:
        """Ends a client's connection; it sends again on the next one what was not acknowledged."""


class ReportStore(Protocol):
    """The store of time series, as far as the pipeline needs it (``TimeSeriesStore``)."""

    @property
    def is_whole(self) -> bool:
        """Whether queries see all that was appended."""

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        """Stores records and notes in one commit."""

    async def series(self, prefix: str) -> Sequence[str]:
        """The names of the series that start with ``prefix``."""


class Marks(Protocol):
    """Makes notes about objects' records, committed together with them (``analysis.late_records.LateMarks``)."""

    def on_sealed(self, records: Sequence[Record]) -> Notes:
        """The notes to commit with a group whose objects' records are these."""

    def on_committed(self) -> None:
        """The group that was sealed last is durable."""


class MessageMapper(Protocol):
    """Maps terminals' messages to records of objects, which are committed together with the messages themselves."""

    def plans(self, uid: str) -> Sequence[Any] | None:
        """The mapping plans that a terminal's messages run through; empty where they feed no object.

        None: they have to be made first, or the terminal's messages have to wait for something else.
        """

    def shape(self, plans: Sequence[Any], points: Points, time_us: int, uid: str, mosaic: list[Record]) -> None:
        """Maps one message of a terminal (``uid``) by its plans; appends the objects' records to ``mosaic``.

        ``points``: the payload, flat; ``time_us``: the record's time, UTC microseconds.
        """

    def when_ready(self, uid: str, done: Callable[[], None]) -> None:
        """Calls ``done`` when ``plans``, of which there were none, are to be asked for again."""

    def lane(self, uid: str) -> Hashable | None:
        """What a terminal shares with others that feed the same objects; None: nothing."""

    def begin(self, reports: Sequence[Record]) -> None:
        """A group begins; each report's record is added to ``reports`` before ``shape`` is called."""

    def note_read(self, report: Record, points: Points) -> None:
        """What was read of a report whose body doesn't say it; ``shape`` is called for it next."""

    def rows_of(self, plans: Sequence[Any]) -> int:
        """How many rows of mappings one message runs through by these plans, which are not empty; at least 1."""

    def keep_up(self, plans: Sequence[Any], count: int) -> None:
        """So many messages, one after the other, have run through these plans."""

    @property
    def has_room(self) -> bool:
        """Whether it takes more messages; if not, decoding waits."""

    def has_room_of(self, company: str) -> bool:
        """Whether it takes more messages of a company's terminals; if not, they wait, and others go on."""

    @property
    def is_dirty(self) -> bool:
        """Whether it has notes to commit, though perhaps no records."""

    def take_records(self) -> Sequence[Record]:
        """Records that no message made, to commit with the group that is sealed next."""

    def seal(self) -> Notes:
        """Ends a group: the notes to commit with it."""

    def on_committed(self) -> None:
        """All that was sealed is durable."""

    @property
    def wanted(self) -> Listeners[[]]:
        """Tells when it has notes to commit though no message came, and when it has room again."""


class SeriesLimit(Protocol):
    """How many series a terminal's reports may have (``terminal_series.TerminalSeries``)."""

    def reject(self, tag: ReportTag) -> Reject | None:
        """Why a report on this topic is not recorded; None: it is."""
