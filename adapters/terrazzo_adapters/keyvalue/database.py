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
    DBCompressionType,
    Options,
    Rdict,
    Snapshot,
    WriteBatch,
)

from terrazzo.ports.store import StoreFull, StoreUnavailable
from terrazzo_broker.persistence.rocksdb_log import log_options, write_options

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)
_MIB = 1 << 20
_STALL_PAUSE_S = 0.002
_FILES_PART = 16  # of the descriptors, for each database
_LEAST_FILES = 64
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_LOCKED = ("lock hold by", "While lock file")


def _open(path: Path, *, what: str, buffer_bytes: int) -> Rdict:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _in_words(error, path, what) from None
    with translated_errors(path, what):
        return Rdict(str(path), _options(buffer_bytes))


def _open_files() -> int:
    """How many files one database keeps open: a share of the process's descriptors."""
    return max(_LEAST_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _FILES_PART)


def _options(buffer_bytes: int) -> Options:
    options = log_options()
    options.create_if_missing(True)
    options.set_write_buffer_size(buffer_bytes)
    options.set_max_write_buffer_number(3)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(4)
    options.set_max_open_files(_open_files())
    # One thread writes, so that the memtable needs no atomics: a third off each insert.
    options.set_allow_concurrent_memtable_write(False)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_bottommost_compression_type(DBCompressionType.zstd())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(buffer_bytes))
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
        buffer_bytes: memory for each of writes (before they go into a file) and reads (cached blocks).
    """

    def __init__(self, path: Path, *, what: str, buffer_bytes: int = 32 * _MIB) -> None:
        self.path = path
        self.what = what
        self._buffer_bytes = buffer_bytes
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
        self._db = _open(self.path, what=self.what, buffer_bytes=self._buffer_bytes)

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

    def commit(self, fill: Callable[[WriteBatch], None], *, sync: bool = True) -> None:
        """Writes all that ``fill`` puts into the batch, or nothing; durably if ``sync``. ``fill`` may be called again.

        Raises:
            StoreUnavailable: whether the batch is stored shows only when the database has been opened again.
        """
        with self.translated_errors():
            while not self._written(fill):
                time.sleep(_STALL_PAUSE_S)
            self.rdict.flush_wal(sync=sync)

    def _written(self, fill: Callable[[WriteBatch], None]) -> bool:
        batch = WriteBatch(raw_mode=True)
        fill(batch)
        try:
            self.rdict.write(batch, self._write_options)
        except Exception as error:
            if "Write stall" in str(error):
                return False
            raise
        return True

    def read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs ``query`` on a snapshot. Its result must hold neither the snapshot nor an iterator."""
        with self._changed:
            db = self.rdict
            self._readers += 1
        try:
            with self.translated_errors():
                return query(db.snapshot(), *args, **kwargs)
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()
