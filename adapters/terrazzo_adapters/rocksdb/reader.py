"""``RocksReader``: the queries for another process than the one that writes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from rocksdict import AccessType, Rdict, Snapshot

from terrazzo.ports.store import StoreUnavailable
from terrazzo_adapters.rocksdb.database import open_database, worded
from terrazzo_adapters.rocksdb.queries import Queries

P = ParamSpec("P")
T = TypeVar("T")


class RocksReader(Queries):
    """Reads a store that another process has open: a RocksDB secondary instance, caught up before each query."""

    def __init__(self, path: Path, db: Rdict, scratch: Path) -> None:
        """Use ``open``."""
        self._path = path
        self._db = db
        self._scratch = scratch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rocksdb-follow")
        self._closed = False

    @classmethod
    async def open(cls, path: str | Path) -> RocksReader:
        """Opens the store in ``path``, which must exist.

        Raises:
            StoreUnavailable: there is none, or it can't be read.
        """
        return await asyncio.to_thread(cls._open, Path(path))

    @classmethod
    def _open(cls, path: Path) -> RocksReader:
        if not (path / "CURRENT").exists():
            raise StoreUnavailable(f"there is no time-series store in {path}")
        scratch = Path(tempfile.mkdtemp(prefix="terrazzo-reader-"))
        try:
            return cls(path, open_database(path, AccessType.secondary(str(scratch))), scratch)
        except StoreUnavailable:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    async def close(self) -> None:
        """Releases everything."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._shut_down)

    def _shut_down(self) -> None:
        self._thread.shutdown()
        self._db.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    async def _read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise StoreUnavailable(f"the reader of the time-series store in {self._path} is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: self._caught_up(query, *args, **kwargs))

    def _caught_up(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with worded(self._path):
            self._db.try_catch_up_with_primary()
            return query(self._db.snapshot(), *args, **kwargs)
