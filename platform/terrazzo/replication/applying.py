"""Does an operation of the log in a store, so that what it changes and its place in the log are there together."""

from __future__ import annotations

from collections.abc import Sequence

from terrazzo.ports.store import Record, RecordsRefused, Seen, TimeSeriesStore
from terrazzo.replication.frame import Appended, Dropped, DroppedSeries, Operation, Replaced, records_of
from terrazzo.replication.position import NOTE, Position


async def apply(
    store: TimeSeriesStore, operation: Operation, position: Position, records: Sequence[Record] | None = None
) -> bool:
    """Does an operation, durably; whether it changed anything. ``records``: those that it appends, where known.

    An append is one commit with its place. Others are done first and noted then: done again after a crash between the
    two they change nothing, as nothing later was done.

    Raises:
        StoreUnavailable: it may be tried again.
        ValueError, RecordsRefused: the store never takes it; its place is noted all the same. So it is in each replica.
    """
    try:
        return await _do(store, operation, position, records)
    except (ValueError, RecordsRefused):
        await store.append((), notes={NOTE: position.encode()})
        raise


async def _do(
    store: TimeSeriesStore, operation: Operation, position: Position, records: Sequence[Record] | None
) -> bool:
    note = {NOTE: position.encode()}
    if isinstance(operation, Appended):
        appended = records_of(operation) if records is None else records
        await store.append(appended, notes={**operation.notes, **note})
        return True
    is_done = True
    if isinstance(operation, Replaced):
        is_done = await _replace(store, operation)
    elif isinstance(operation, Dropped):
        await store.drop_before(operation.before_us)
    elif isinstance(operation, DroppedSeries):
        await store.drop_before(operation.before_us, series=operation.series)
    await store.append((), notes=note)
    return is_done


async def _replace(store: TimeSeriesStore, operation: Replaced) -> bool:
    name = operation.series
    records = [Record(name, time_us, body) for time_us, body in operation.records]
    given = Seen(operation.given, operation.total)
    return await store.replace(name, operation.start_us, operation.end_us, records, given=given)
