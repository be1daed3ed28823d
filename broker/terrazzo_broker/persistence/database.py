"""RocksDB for the broker: its options, its errors as ``StorageError``, synced commits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
)

from ..storage import StorageError
from .rocksdb_log import log_options, open_telling_damage, write_options

_MIB = 1 << 20
_STALL_PAUSE_S = 0.002
_STALL_S = 5.0
_BUFFER_BYTES = 8 * _MIB  # bounds the log, and with it what a start has to read again
_UNWRITTEN_BYTES = 4 * _MIB  # of a commit, before its log is written along: the rest of a larger one is
_WRITTEN = "rocksdb.cur-size-active-mem-table"
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_LOCKED = ("lock hold by", "While lock file")


KeyValues = Mapping[bytes, bytes | None]
"""KeyValues by key; None deletes the key."""

KeyRanges = Iterable[tuple[bytes, bytes]]
"""KeyRanges of keys to delete: the first key, and the first one beyond."""


class _Stalled(Exception):
    """RocksDB refuses a write for now: too many files wait to be merged."""


class StateDatabase:
    """The database in one folder; one process may open it at a time, and one thread call it at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._write_options = write_options()
        self._db: Rdict | None = None

    def open(self) -> None:
        """Opens the database, and creates it where there is none.

        Raises:
            StorageError: another process has it, the folder can't be written, the files are damaged.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._in_words(error) from None
        with self._worded():
            options = _options()
            # Without the families it would take theirs from the folder: what an earlier version set.
            families = {"default": options}
            self._db = open_telling_damage(
                self.folder,
                options,
                lambda given: Rdict(str(self.folder), given, families, access_type=AccessType.read_write()),
            )

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values in the order of the keys."""
        assert self._db is not None
        with self._worded():
            yield from self._db.items()

    def get(self, key: bytes) -> bytes | None:
        """A value; None: there is none.

        Raises:
            StorageError: it can't be read.
        """
        db = self._db  # which a commit that fails on its thread takes away
        if db is None:
            raise StorageError(f"the broker's storage in {self.folder} is closed")
        with self._worded():
            value: bytes | None = db.get(key)
        return value

    def commit(self, values: KeyValues, ranges: KeyRanges = ()) -> None:
        """``write`` and ``sync``; opens the database if it is closed, and waits up to five seconds for a stall to end.

        Raises:
            StorageError: it failed; whether it is stored is unknown until a later commit succeeds.
        """
        if self._db is None:
            self.open()
        deadline_s = time.monotonic() + _STALL_S
        while not self.write(values, ranges):
            if time.monotonic() > deadline_s:
                raise StorageError(f"the broker's storage in {self.folder} is too slow")
            time.sleep(_STALL_PAUSE_S)
        self.sync()

    def write(self, values: KeyValues, ranges: KeyRanges = ()) -> bool:
        """Puts values, deletes keys whose value is None, then all keys in the ranges: all of it or nothing.

        It is in memory, and survives a crash after ``sync``. False, with nothing written: the database is closed, or
        stalls.

        Raises:
            StorageError: it failed, and may be written all the same; the database is closed.
        """
        if self._db is None:
            return False
        try:
            with self._failing():
                self._db.write(_batch(values, ranges), self._write_options)
        except _Stalled:
            return False
        return True

    def sync(self) -> None:
        """Syncs everything that was written to the disk.

        Raises:
            StorageError: it failed, and may be on the disk all the same; the database is closed.
        """
        assert self._db is not None
        with self._failing():
            self._db.flush_wal(sync=True)
            if (self._db.property_int_value(_WRITTEN) or 0) > _BUFFER_BYTES:
                self._db.flush(wait=False)

    def checkpoint(self, path: Path) -> None:
        """Makes a copy in ``path`` that can be opened in its place; files on the same disk are linked, not copied.

        Raises:
            StorageError: the database is closed, ``path`` exists, or it can't be written.
        """
        db = self._db
        if db is None:
            raise StorageError(f"the broker's storage in {self.folder} is closed")
        with self._worded():
            db.flush(wait=True)  # which lets others run; what follows does not
            Checkpoint(db).create_checkpoint(str(path))

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            with self._worded():
                yield
        except StorageError:
            self.close()
            raise

    def close(self) -> None:
        """Closes the database; what was committed stays."""
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(StorageError), self._worded():  # what was synced is in the log
                db.close()

    @contextlib.contextmanager
    def _worded(self) -> Iterator[None]:
        """Turns rocksdict's errors, each a plain ``Exception`` with a text, into ``StorageError`` or ``_Stalled``."""
        try:
            yield
        except Exception as error:  # rocksdict has no narrower class; whatever has one goes on as it is
            if type(error) is not Exception:
                raise
            # Without the traceback: it would keep iterators, and with them the folder's lock.
            raise self._in_words(error.with_traceback(None)) from None

    def _in_words(self, error: Exception) -> Exception:
        text = str(error)
        if "Write stall" in text:
            return _Stalled(text)
        if any(sign in text for sign in _FULL):
            return StorageError(f"no space left for the broker's storage in {self.folder}: {text}")
        if any(sign in text for sign in _LOCKED):
            return StorageError(f"the broker's storage in {self.folder} is in use by another process")
        return StorageError(f"the broker's storage in {self.folder} failed: {text}")


def _batch(values: KeyValues, ranges: KeyRanges) -> WriteBatch:
    batch = WriteBatch(raw_mode=True)
    for key, value in values.items():
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)
    for first, beyond in ranges:
        batch.delete_range(first, beyond)
    return batch


def _options() -> Options:
    options = log_options()
    options.create_if_missing(True)
    # What is written is flushed by ``sync``: a write that began a new log would be one to the disk, on the event loop.
    options.set_write_buffer_size(4 * _BUFFER_BYTES)
    options.set_writable_file_max_buffer_size(_UNWRITTEN_BYTES)
    options.set_max_write_buffer_number(3)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_allow_concurrent_memtable_write(False)  # one thread writes
    options.set_compression_type(DBCompressionType.lz4())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(_BUFFER_BYTES))
    blocks.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(blocks)
    return options
