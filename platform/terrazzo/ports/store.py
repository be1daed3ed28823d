"""The port to a time-series store: ``TimeSeriesStore``, implemented in ``terrazzo_adapters``.

A *series* is named by a string whose first segment says its kind:

====================  ==================================================================
``g/<uid>/<channel>``  grid: what a terminal published, named by the full MQTT topic
``m/<object_id>``      mosaic: what an object's variables became
``x/<uid>``            rejects: what a terminal published and could not be decoded
``c/<uid>``            what a terminal answered to commands, with the Correlation Data that names them
====================  ==================================================================

A body is the bytes of one record: a JSON object or a MessagePack map, told apart by the first byte. Records of one
series are ordered by time, then by arrival; two records may share a microsecond.

A record *carries* the names in its body, those of nested objects joined with ``.``; one whose value is null is carried
too. A *point* is a name's value in one record that is a number, text or true/false: null is none.

Beside the series a store keeps *notes*: a value per name, written in the same commit as the records that it follows
from, so that a reader of notes after a crash knows exactly what the records say.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec

from terrazzo.durations import Durations
from terrazzo.times import LATEST_US

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value = float | int | str | bool | None

Fn = Literal["mean", "min", "max", "sum", "last"]
"""How the points of a bucket become one value. Only ``last`` takes texts; for the others true is 1 and false 0."""

ANY_SIZE = 2**62
"""Of records that a query may take, in bytes: no limit."""

MOST_BUCKETS = 1_000_000
"""The most buckets that one query may have."""


class Record(msgspec.Struct, frozen=True, order=True, gc=False):
    """One record of one series. ``time_us``: UTC microseconds, not negative.

    A Struct that the garbage collector need not look at: it is made in a third of the time of a tuple with names.
    """

    series: str
    time_us: int
    body: bytes


Notes = Mapping[str, bytes | None]
"""Values by name; None deletes."""

NO_NOTES: Notes = MappingProxyType({})


class Page(NamedTuple):
    """Some records of a range, newest first, and the exact number of records in the whole range."""

    records: list[Record]
    total: int


class Buckets(NamedTuple):
    """Some buckets of a range, newest first, and the exact number of buckets in the whole range.

    ``starts_us``: where each begins. ``columns``: for each name the value of each bucket, None where it has no points;
    every bucket has at least one value.
    """

    starts_us: list[int]
    columns: dict[str, list[Value]]
    total: int


class Curve(NamedTuple):
    """Points of one name chosen for drawing, oldest first."""

    times_us: list[int]
    values: list[float]


class Points(NamedTuple):
    """Points of one name as arrays, in the order of time, then of arrival.

    ``kinds``: 0 number, 1 true or false, 2 text. ``numbers``: true and false as 1 and 0, texts by their index in
    ``texts``.
    """

    times_us: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    numbers: NDArray[np.float64]
    texts: Sequence[str]


class Figures(NamedTuple):
    """Stretches of one name's points in few figures each, oldest first, none over another: an hour, or a single point.

    ``starts_us``: UTC microseconds at or before the first point of each. ``values`` and ``times_us`` have four rows, of
    each stretch the first, lowest, highest and last point, of equal ones the earliest. All points are numbers
    (``kind`` 0), or all are true or false (1; 1 and 0 in ``values``); no two share a time.
    """

    kind: int
    starts_us: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    values: NDArray[np.float64]
    times_us: NDArray[np.int64]


Whose = Callable[[str], int]
"""By the name of a series, whose it is: the id of a company, 0 for nobody's."""

Undivided = Callable[["NDArray[np.int64]", int], "NDArray[np.bool_]"]
"""Of stretches, by when they begin and how long they all are (UTC microseconds): which may stand as a whole."""


class Seen(NamedTuple):
    """The number of records that a reader found in a range of these series together; ``replace`` compares it."""

    series: Sequence[str]
    total: int


class Watch:
    """Whether a range of a series, both ends inclusive, is still as it was when the watch began."""

    __slots__ = ("__weakref__", "end_us", "is_current", "start_us")

    def __init__(self, start_us: int, end_us: int) -> None:
        self.start_us = start_us
        self.end_us = end_us
        self.is_current = True


class StoreStats(msgspec.Struct, kw_only=True):
    """The status of a store for operators; counters since the start of the process.

    The numbers of a spool are 0 for a store that keeps everything itself, those of sealing for one on a server.
    """

    spooled_records: int = 0  # had to wait in the spool, because the server did not take them at once
    refused_records: int = 0  # were acknowledged, and refused by the server for good when they left the spool
    spool_batches: int = 0  # waiting now
    spool_bytes: int = 0  # waiting now
    away_since_seconds: float = 0.0  # Unix time since which its server is away; 0: it is there
    sealed_records: int = 0  # were put into segments
    sealing_failures: int = 0  # ranges that could not be, and were left as they are
    unsealed_records: int = 0  # are in no segment, as of the last look at all series
    sealing_backlog: int = 0  # records of the series of which a block is full, and not sealed yet
    sealing_looked: float = 0.0  # how much of all series the present look has seen, from 0 to 1
    sealing_waits_for_disk: int = 0  # 1: no segments are made while so little of the disk is free
    damaged_segments: int = 0  # of those that were read
    segment_cache_hits: int = 0  # parts of segments that were decoded already
    segment_cache_misses: int = 0  # that had to be
    written_bytes: int = 0  # of what was appended, with all that goes with it; 0 where that isn't known
    refused_queries: int = 0  # as too many of a company waited already
    memory: dict[str, int] = {}  # bytes that its library has beside Python, by part
    query_times: Mapping[str, Durations] = {}  # by the name of the query, where somebody times them


class RecordsTooLarge(ValueError):
    """The records that a query asks for have more bytes than it may take."""


class TooManyBuckets(ValueError):
    """A range would have more than ``MOST_BUCKETS`` buckets; ``str()`` says so."""


class StoreUnavailable(Exception):
    """The store can't answer now; the caller may retry. ``str()`` can be shown to an operator."""


class NotReplaceable(Exception):
    """The store can't replace these records; ``str()`` says why, and can be shown to an operator."""


class StoreFull(StoreUnavailable):
    """The disk (or the spool) is full: nothing of the batch was stored."""


class RecordsRefused(Exception):
    """The store will never take ``records`` (older than the server's retention, say); the rest of the batch is stored.

    Not to be retried. ``str()`` can be shown to an operator.
    """

    def __init__(self, records: list[Record], reason: str) -> None:
        super().__init__(reason)
        self.records = records


class TimeSeriesStore(Protocol):
    """Appends records durably and reads them back. Every method may raise ``StoreUnavailable``."""

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        """Stores all records and notes or none; on return they survive ``kill -9`` and power loss.

        After a crash both are there or neither; with a store on a server the records may still be on their way.

        Records arrive in order of arrival. Cancelling the call leaves it unknown whether they were stored.

        Raises:
            ValueError: a record's series or time can't be stored, says which; nothing was stored.
            RecordsRefused: some records can never be stored; all others are, and the notes.
        """

    def stats(self) -> StoreStats:
        """The present status and counters."""

    def kept(self) -> Mapping[int, tuple[int, int]]:
        """What is kept in memory of what was read, for the next question: bytes and things, by company."""

    def give_up(self, company_id: int, size: int) -> int:
        """Forgets about ``size`` bytes of what is kept of a company; returns how many it were."""

    @property
    def has_sizes(self) -> bool:
        """Whether ``sizes`` says anything."""

    async def sizes(self, whose: Whose) -> Mapping[int, int]:
        """About how many bytes of the disk each owner's series take, of those that have some.

        It looks at all series, some at a time, in the background; what comes meanwhile may count or not.
        """

    @property
    def is_whole(self) -> bool:
        """Whether queries see all that was appended; they don't while records wait for a server that is away."""

    def watch(self, series: str, start_us: int, end_us: int) -> Watch | None:
        """Begins to watch a range of a series, for whoever remembers what it is asked for next.

        A record that falls into it, and whatever replaces or deletes some of it, ends the watch before it is told to
        be stored or done; so may anything else. None: others write to the store, too.
        """

    async def notes(self, prefix: str) -> dict[str, bytes]:
        """The notes whose names start with ``prefix``, sorted by name. Retention leaves them alone."""

    async def series(self, prefix: str) -> list[str]:
        """The names of the series that start with ``prefix`` (``g/<uid>/``), sorted; ``m/17`` finds itself only when
        the caller asks for the exact name elsewhere: a prefix is compared as text."""

    async def latest(
        self, series: Sequence[str], limit: int, *, keys: Sequence[str] = (), most_bytes: int = ANY_SIZE
    ) -> list[Record]:
        """The newest ``limit`` records of all the named series together, newest first. Unknown series are empty.

        Args:
            keys: only records that carry at least one of these names; for mosaic series. Empty: all records.
            most_bytes: of the bodies together.

        Raises:
            RecordsTooLarge: they have more.
        """

    async def latest_each(
        self, series: str, keys: Sequence[str], *, until_us: int = LATEST_US, most_bytes: int = ANY_SIZE
    ) -> Mapping[str, Record]:
        """For each of these names the newest record of the mosaic series that carries it; names without are absent.

        Args:
            until_us: of those that are not later.
            most_bytes: as in ``latest``.
        """

    async def first_after(self, series: Sequence[str], time_us: int, *, keys: Sequence[str] = ()) -> Record | None:
        """The first record strictly later than ``time_us``; of several at that time the first to arrive.

        ``keys`` as in ``latest``.
        """

    async def page(
        self,
        series: Sequence[str],
        start_us: int,
        end_us: int,
        *,
        offset: int,
        limit: int,
        keys: Sequence[str] = (),
        most_bytes: int = ANY_SIZE,
        whole: bool = True,
    ) -> Page:
        """Records with ``start_us <= time_us <= end_us`` (both inclusive), newest first, ``offset`` skipped.

        ``keys`` and ``most_bytes`` as in ``latest``; the total counts what the keys select.

        Args:
            whole: False: bodies may lack the names that are not among ``keys``, if there are keys.
        """

    def scan(
        self, series: Sequence[str], start_us: int, end_us: int, *, keys: Sequence[str] = ()
    ) -> AsyncGenerator[list[Record], None]:
        """All records of a range (both ends inclusive), oldest first, in pieces of bounded size, none empty.

        Nothing is held between pieces, so that a reader may take its time; a record that comes late, behind the piece
        that was read last, is not seen. ``keys`` as in ``latest``.
        """

    async def names(self, series: str, start_us: int, end_us: int) -> list[str]:
        """The names that the records of a range carry, sorted; both ends are inclusive."""

    def columns(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int
    ) -> AsyncGenerator[Mapping[str, Points], None]:
        """The points of a range (both ends inclusive) as arrays, in pieces of bounded size, oldest first.

        A piece has the names that have points in it, and is not empty. Numbers that are not finite are no points.
        Holds nothing between pieces, as ``scan``.
        """

    def digests(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, undivided: Undivided
    ) -> AsyncGenerator[Mapping[str, Points | Figures], None]:
        """As ``columns``; where the store has figures of stretches that are ``undivided``, these instead of points."""

    async def resample(
        self,
        series: str,
        keys: Sequence[str],
        start_us: int,
        end_us: int,
        *,
        bucket_us: int,
        fn: Fn | None = None,
        origin_us: int = 0,
        offset: int = 0,
        limit: int = MOST_BUCKETS,
    ) -> Buckets:
        """The points of a range (both ends inclusive) in buckets of equal length; buckets without points are absent.

        Args:
            bucket_us: the length, positive.
            fn: None: ``mean``, and ``last`` where a bucket has only texts.
            origin_us: where a bucket begins, and thereby all.
            offset, limit: which buckets, counted from the newest.

        Raises:
            TooManyBuckets: choose longer ones.
        """

    async def extremes(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, bucket_us: int, origin_us: int = 0
    ) -> Mapping[str, Curve]:
        """The first, lowest, highest and last number (or boolean) of each bucket, for each name.

        Names without such points are absent. Raises as ``resample``.
        """

    async def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        """Replaces all records of one series from ``start_us`` to ``end_us`` (both inclusive) by ``records``.

        All of it or nothing, durably, and only if the series of ``given`` still have as many records in the range as it
        says: no record that came after the reading is lost. Returns False, and changes nothing, if they have others.

        A store on a server has no transaction for it: what it began it completes, after any crash too, but other
        processes may briefly read the range half done; and a call that was cancelled or raised ``StoreUnavailable`` may
        still be carried out, before anything that is appended after it.

        Raises:
            ValueError: a record is of another series, or out of the range, or can't be stored; nothing was changed.
            NotReplaceable: this store never does, or keeps nothing that old; nothing was changed.
        """

    @property
    def is_replaceable(self) -> bool:
        """Whether ``replace`` works with this store, as far as is known before it was reached for the first time."""

    async def drop_before(self, time_us: int, *, series: Collection[str] | None = None) -> None:
        """Deletes all records earlier than ``time_us`` (retention).

        Args:
            series: of these alone, where they are there; None: of all.
        """

    async def check(self) -> None:
        """Returns if the store accepts work, raises ``StoreUnavailable`` otherwise (``/readyz``)."""

    async def checkpoint(self, path: Path) -> None:
        """Makes a consistent copy in ``path`` of what it keeps on this machine, to be opened in its folder's place.

        All that was appended before is in it; a store on a server copies its spool and notes. ``path`` must not exist.

        Raises:
            FileExistsError: it does.
            OSError: it could not be written.
        """

    async def close(self) -> None:
        """Completes what is under way and releases everything."""
