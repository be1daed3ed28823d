"""The embedded time-series store, on RocksDB.

======== =======================================================================
keys     what a key and a value look like on disk
database the open database: options, errors in words, closing and reopening
batch    records to keys and values, and the way back
engine   the one writer: commits, retention, recovery after a failed write
reads    the queries, over a snapshot
store    ``RocksStore``: the port, on asyncio
reader   ``RocksReader``: the same queries from another process
======== =======================================================================
"""

from terrazzo_adapters.rocksdb.reader import RocksReader
from terrazzo_adapters.rocksdb.store import RocksStore

__all__ = ["RocksReader", "RocksStore"]
