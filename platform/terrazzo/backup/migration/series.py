"""Records and notes from one store to another, through the port.

How far it is stands in a note of the target, in the commit of the records before it: whenever this is killed, it goes
on with the next record. Series that are read together (the channels of a terminal) are copied together, so that records
of one microsecond keep the order in which they arrived.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from terrazzo.backup.migration.marker import Unmovable
from terrazzo.ports.store import Notes, Record, RecordsRefused, StoreUnavailable, TimeSeriesStore

Tell = Callable[[str, int, int], None]

NOTE = "migration/progress"
END_US = 2**62
WHOLE_S = 60.0  # how long a server may take nothing of what waits in the spool

_BATCH_BYTES = 4 << 20
_BATCH_RECORDS = 2_000
_LOOK_S = 0.05


class Progress(msgspec.Struct, kw_only=True):
    """What the target has: all groups before ``group``, and of it what comes before and at ``time_us``.

    ``at``: how many records at ``time_us``; ``done``: of all groups; ``refused``: will never be taken.
    """

    group: str = ""
    time_us: int = 0
    at: int = 0
    done: int = 0
    refused: str = ""


def groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Series that are read together, by what they have in common, sorted: a terminal's channels, others alone."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        kind, _, rest = name.partition("/")
        found.setdefault(f"g/{rest.partition('/')[0]}" if kind == "g" else name, []).append(name)
    return dict(sorted(found.items()))


async def read_progress(store: TimeSeriesStore) -> Progress | None:
    """How far a half-done target is; None where nothing was begun."""
    note = (await store.notes(NOTE)).get(NOTE)
    return None if note is None else msgspec.json.decode(note, type=Progress)


async def claim_store(target: TimeSeriesStore) -> None:
    """Checks that a target is empty, or half-done.

    Raises:
        Unmovable: it has records of its own.
        StoreUnavailable: it can't be asked.
    """
    await settle(target)
    if await read_progress(target) is not None:
        return
    names = await target.series("")
    if names or await target.notes(""):
        what = f"series already ({', '.join(names[:3])})" if names else "notes of a platform already"
        raise Unmovable(f"store of the target: it has {what}; name an empty one")
    await _append(target, (), {NOTE: msgspec.json.encode(Progress())})


async def settle(store: TimeSeriesStore) -> None:
    """Waits until queries see all that was appended.

    Raises:
        StoreUnavailable: its server is away, or takes nothing of what waits.
    """
    await store.check()
    waiting, since = -1, 0.0
    while not store.is_whole:
        now, depth = asyncio.get_running_loop().time(), store.stats().spool_batches
        waiting, since = (depth, now) if depth != waiting else (waiting, since)
        if now - since > WHOLE_S:
            raise StoreUnavailable(f"the time-series store takes nothing of the {depth} batches that wait for it")
        await asyncio.sleep(_LOOK_S)


async def count_records(store: TimeSeriesStore) -> tuple[int, int]:
    """How many records there are, and about how many bytes."""
    total = size = 0
    for names in groups(await store.series("")).values():
        page = await store.page(names, 0, END_US, offset=0, limit=1)
        total += page.total
        size += page.total * sum(len(record.series) + len(record.body) + 16 for record in page.records)
    return total, size


async def copy_series(source: TimeSeriesStore, target: TimeSeriesStore, total: int, tell: Tell) -> None:
    """Copies what the target does not have yet: records, then notes.

    Raises:
        Unmovable: the target will never take some of the records; says why.
        StoreUnavailable: a store doesn't answer; may be tried again.
    """
    progress = await read_progress(target) or Progress()
    _raise_if_refused(progress)
    for group, names in groups(await source.series("")).items():
        if group >= progress.group:
            if group > progress.group:
                progress = msgspec.structs.replace(progress, group=group, time_us=0, at=0)
            progress = await _copy_group(source, target, names, progress, total, tell)
    for notes in _note_batches(await source.notes("")):
        await _append(target, (), notes)
    await settle(target)


async def _copy_group(
    source: TimeSeriesStore, target: TimeSeriesStore, names: Sequence[str], progress: Progress, total: int, tell: Tell
) -> Progress:
    begin_us, left_out = progress.time_us, progress.at
    async for found in source.scan(names, begin_us, END_US):
        here = sum(record.time_us == begin_us for record in found[:left_out])
        left_out -= here
        for records in _batches(found[here:]):
            progress = _advanced(progress, records)
            await _append_noted(target, records, progress)
            tell("records", progress.done, total)
    return progress


def _advanced(progress: Progress, records: Sequence[Record]) -> Progress:
    last_us = records[-1].time_us
    at = sum(record.time_us == last_us for record in records) + (progress.at if last_us == progress.time_us else 0)
    return msgspec.structs.replace(progress, time_us=last_us, at=at, done=progress.done + len(records))


async def _append_noted(target: TimeSeriesStore, records: Sequence[Record], progress: Progress) -> None:
    """Appends; what the target refuses for good is noted, as all else of the batch is there and must not come again."""
    try:
        await _append(target, records, {NOTE: msgspec.json.encode(progress)})
    except RecordsRefused as error:
        first = error.records[0]
        told = f"{len(error.records)} records, the first of {first.series} at {first.time_us}: {error}"
        noted = msgspec.structs.replace(progress, refused=told)
        await _append(target, (), {NOTE: msgspec.json.encode(noted)})
        _raise_if_refused(noted)


async def _append(target: TimeSeriesStore, records: Sequence[Record], notes: Notes) -> None:
    try:
        await target.append(records, notes=notes)
    except ValueError as error:
        raise Unmovable(f"store of the target: it can't keep a record: {error}") from None


def _raise_if_refused(progress: Progress) -> None:
    if progress.refused:
        advice = "give it a longer retention, empty it, and begin anew with an empty --to-data"
        raise Unmovable(f"store of the target: it refuses {progress.refused}; {advice}")


def _batches(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    begin = size = 0
    for place, record in enumerate(records):
        size += len(record.body)
        if place > begin and (size > _BATCH_BYTES or place - begin >= _BATCH_RECORDS):
            yield records[begin:place]
            begin, size = place, len(record.body)
    if begin < len(records):
        yield records[begin:]


def _note_batches(notes: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    batch: dict[str, bytes] = {}
    size = 0
    for name, value in notes.items():
        if name == NOTE:
            continue
        batch[name], size = value, size + len(value)
        if size > _BATCH_BYTES or len(batch) >= _BATCH_RECORDS:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch


async def measure_series(store: TimeSeriesStore, total: int, tell: Tell, what: str) -> dict[str, tuple[int, str]]:
    """Of each series its records and their SHA-256 in the order of time, then of arrival; the same way of any store."""
    measured: dict[str, tuple[int, str]] = {}
    done = 0
    for names in groups(await store.series("")).values():
        sums = {name: hashlib.sha256() for name in names}
        counts = dict.fromkeys(names, 0)
        async for records in store.scan(names, 0, END_US):
            for each in records:
                sums[each.series].update(b"%d %d " % (each.time_us, len(each.body)) + each.body)
                counts[each.series] += 1
            done += len(records)
            tell(what, done, total)
        measured |= {name: (counts[name], sums[name].hexdigest()) for name in names if counts[name]}
    return measured


async def measure_notes(store: TimeSeriesStore) -> dict[str, str]:
    """The SHA-256 of each note."""
    return {name: hashlib.sha256(value).hexdigest() for name, value in (await store.notes("")).items() if name != NOTE}


async def release_store(target: TimeSeriesStore) -> None:
    """Removes the mark from a target that is complete."""
    await _append(target, (), {NOTE: None})
