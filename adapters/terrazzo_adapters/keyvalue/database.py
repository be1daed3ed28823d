"""``KeyValueDatabase``: its options, its errors as exceptions of the port, and closing it under readers."""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Condition
from typing import Concatenate, ParamSpec, TypeVar

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    Snapshot,
    WriteBatch,
)

from terrazzo.ports.store import StoreFull, StoreUnavailable
from terrazzo_broker.persistence.rocksdb_log import log_options, open_telling_damage, write_options

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)
_MIB = 1 << 20
_STALL_PAUSE_S = 0.002
_BUFFERS = 3  # of writes, at most: one that is filled and two that are being flushed
_BUFFER_BYTES = 16 * _MIB
CACHE_BYTES = 16 * _MIB
# Of a commit, before its log is written along: the rest of a larger one is. The buffer of each new file, too: of 4 MiB
# (``runtime/allocator.py``) it would be new memory of the system each time, a thousand pages to touch.
_UNWRITTEN_BYTES = 3 * _MIB
_MERGED_FILES, _SLOW_FILES = 8, 40  # of the first level, until they are merged, and until writes are slowed down
_LEVELS = 7  # of files: the first, those merged into from there, and so on, as far as there are any
_ZLIB_BITS = -14  # RocksDB's default, of a library that isn't used
_LEVEL = 1  # of zstd: as small as its default (3) for records, and a fifth faster
_FILES_PART = 16  # of the descriptors, for each database
_LEAST_FILES = 64
_WRITTEN = "rocksdb.cur-size-active-mem-table"
_PARTS = {
    "writes": "rocksdb.size-all-mem-tables",
    "blocks": "rocksdb.block-cache-usage",
    "files": "rocksdb.estimate-table-readers-mem",
}
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_LOCKED = ("lock hold by", "While lock file")


def _open(path: Path, *, what: str, options: Options) -> Rdict:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _in_words(error, path, what) from None
    with translated_errors(path, what):
        # Without the families it would take theirs, and a small cache, from the folder: what an earlier version set.
        return open_telling_damage(
            path, options, lambda given: Rdict(str(path), given, column_families={"default": given})
        )


def _open_files() -> int:
    """How many files one database keeps open: a share of the process's descriptors."""
    return max(_LEAST_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _FILES_PART)


def _options(buffer_bytes: int, cache_bytes: int) -> Options:
    options, lz4, zstd = log_options(), DBCompressionType.lz4, DBCompressionType.zstd
    options.create_if_missing(True)
    # What is written is flushed at ``buffer_bytes``, by ``commit``: a write that began a new log would go to the disk.
    options.set_write_buffer_size(4 * buffer_bytes)
    options.set_max_write_buffer_number(_BUFFERS)
    options.set_writable_file_max_buffer_size(_UNWRITTEN_BYTES)
    options.set_level_zero_file_num_compaction_trigger(_MERGED_FILES)
    options.set_level_zero_slowdown_writes_trigger(_SLOW_FILES)
    options.set_level_zero_stop_writes_trigger(2 * _SLOW_FILES)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(4)
    options.set_max_open_files(_open_files())
    # One thread writes, so that the memtable needs no atomics: a third off each insert.
    options.set_allow_concurrent_memtable_write(False)
    # Files of the first 256 MB are merged again and again: zstd would take half of the processor time that this takes.
    options.set_compression_per_level([lz4(), lz4(), *(zstd() for _ in range(_LEVELS - 2))])
    options.set_compression_options(_ZLIB_BITS, _LEVEL, 0, 0)
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(cache_bytes))
    blocks.set_cache_index_and_filter_blocks(True)  # within the same bound, instead of one for each open file
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    blocks.set_block_size(16 * 1024)
    options.set_block_based_table_factory(blocks)
    return options


def _in_words(error: Exception, path: Path, what: str) -> StoreUnavailable:
    """The error of ``terrazzo.ports.store`` that corresponds to one of RocksDB's."""
    text = str(error)
    if any(sign in text for sign in _FULL):
        return StoreFull(f"no space left for the {what} in {path}: {text}")
    if any(sign in text for sign in _LOCKED):
        return StoreUnavailable(f"the {what} in {path} is in use by another process")
    return StoreUnavailable(f"the {what} in {path} failed: {text}")


@contextmanager
def translated_errors(path: Path, what: str) -> Iterator[None]:
    """Turns rocksdict's errors into ``StoreUnavailable`` or ``StoreFull``: they are bare ``Exception`` with a text.

    Args:
        what: the words for the database in ``path``, like ``time-series store``.
    """
    try:
        yield
    except Exception as error:
        if type(error) is not Exception:
            raise
        # Without the traceback: it would keep a query's iterators, and with them the folder's lock.
        raise _in_words(error.with_traceback(None), path, what) from None


class KeyValueDatabase:
    """One database that readers on several threads and one writing thread share, and that can be closed and reopened.

    RocksDB's lock on the folder is released only with the last snapshot and iterator; therefore readers are counted.

    Args:
        what: what the database is for, in messages of errors.
        buffer_bytes: memory for writes, before they go into a file: at most three times as much while the disk is slow.
        cache_bytes: memory for blocks that were read last, and for the indexes of files.
    """

    def __init__(
        self, path: Path, *, what: str, buffer_bytes: int = _BUFFER_BYTES, cache_bytes: int = CACHE_BYTES
    ) -> None:
        self.path = path
        self.what = what
        self._buffer_bytes = buffer_bytes
        self._cache_bytes = cache_bytes
        self._write_options = write_options()
        self._changed = Condition()
        self._readers = 0
        self._reason = "it is not open"
        self._db: Rdict | None = None

    @property
    def is_open(self) -> bool:
        """Whether it accepts reads and writes."""
        return self._db is not None

    @property
    def rdict(self) -> Rdict:
        """The open database.

        Raises:
            StoreUnavailable: it is closed; says why.
        """
        if self._db is None:
            raise StoreUnavailable(f"the {self.what} in {self.path} does not answer: {self._reason}")
        return self._db

    def open(self) -> None:
        """Opens the database, creates it where there is none.

        Raises:
            StoreUnavailable: another process has it, the folder can't be written, the files are damaged.
        """
        self._db = _open(self.path, what=self.what, options=_options(self._buffer_bytes, self._cache_bytes))

    def close(self, reason: str) -> None:
        """Refuses new readers, whose error gives ``reason``, waits for those that read, and closes."""
        with self._changed:
            db, self._db, self._reason = self._db, None, reason
            self._changed.wait_for(lambda: self._readers == 0)
        if db is None:
            return
        try:
            db.close()
        except Exception as error:  # noqa: BLE001 - it is closed nevertheless; what was synced is in its log
            _log.warning("closing the %s in %s: %s", self.what, self.path, error)

    def translated_errors(self) -> AbstractContextManager[None]:
        """Turns rocksdict's errors into ``StoreUnavailable`` or ``StoreFull``, for whoever uses ``rdict`` directly."""
        return translated_errors(self.path, self.what)

    def commit(self, fill: Callable[[WriteBatch], None], *, sync: bool = True) -> int:
        """Writes all that ``fill`` puts into the batch, or nothing; durably if ``sync``. ``fill`` may be called again.

        Returns the bytes of its keys and values.

        Raises:
            StoreUnavailable: whether the batch is stored shows only when the database has been opened again.
        """
        with self.translated_errors():
            while not (size := self._written(fill)):
                time.sleep(_STALL_PAUSE_S)
            self.rdict.flush_wal(sync=sync)
            if self._size_of(_WRITTEN) > self._buffer_bytes:
                self.rdict.flush(wait=False)
        return size

    def _written(self, fill: Callable[[WriteBatch], None]) -> int:
        """How many bytes were written, a few at least; 0: nothing, as it has to wait."""
        batch = WriteBatch(raw_mode=True)
        fill(batch)
        size: int = batch.size_in_bytes()  # of an empty one, too, it is more than 0; afterwards it can't be asked
        try:
            self.rdict.write(batch, self._write_options)
        except Exception as error:
            if "Write stall" in str(error):
                return 0
            raise
        return size

    def _size_of(self, name: str) -> int:
        return self.rdict.property_int_value(name) or 0

    def flush(self) -> None:
        """Writes what is in memory into files, so that a checkpoint has little to write: that holds the interpreter.

        Raises:
            StoreUnavailable: it is closed, or the disk fails.
        """
        with self.translated_errors():
            self.rdict.flush(wait=True)

    def checkpoint(self, path: Path) -> None:
        """Makes a copy that can be opened as a database of its own; files on the same disk are linked, not copied.

        Raises:
            FileExistsError: ``path`` exists already.
            OSError, StoreUnavailable: it could not be made.
        """
        if path.exists():
            raise FileExistsError(f"{path}: a checkpoint needs a path that does not exist")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.flush()
        with translated_errors(path, self.what):
            Checkpoint(self.rdict).create_checkpoint(str(path))

    def memory(self) -> dict[str, int]:
        """Bytes of memory that it has, by part.

        Raises:
            StoreUnavailable: it is closed.
        """
        return {part: self._size_of(name) for part, name in _PARTS.items()}

    def told(self, name: str) -> str | None:
        """A property of RocksDB's, as a text; None where it has none of that name.

        Raises:
            StoreUnavailable: it is closed.
        """
        with self.translated_errors():
            return self.rdict.property_value(name)

    def compact(self, start: bytes, end: bytes) -> None:
        """Rewrites the files with keys in a range without what was deleted, and lets others work meanwhile.

        It takes as long as reading these files does, and a closing of the database waits for it.
        """
        self.read(lambda _: self.rdict.compact_range(start, end))

    def read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs ``query`` on a snapshot. Its result must hold neither the snapshot nor an iterator."""
        with self._changed:
            db = self.rdict
            self._readers += 1
        try:
            return query(db.snapshot(), *args, **kwargs)
        except Exception as error:
            if type(error) is not Exception:
                raise
            raise _in_words(error.with_traceback(None), self.path, self.what) from None
        finally:
            with self._changed:
                self._readers -= 1
                if self._db is None:  # somebody waits to close it
                    self._changed.notify_all()
