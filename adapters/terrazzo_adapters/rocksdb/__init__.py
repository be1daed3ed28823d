"""The embedded time-series store, on RocksDB.

======== =======================================================================
keys     what a key and a value look like on disk
database the open database: options, errors in words, closing and reopening
batch    records to keys and values, and the way back
engine   the one writer: commits, retention, recovery after a failed write
walk     over keys, up and down
hours    of a series: how many records each has, which names they carry
found    records in order, as long as somebody takes them
reads    the queries, over a snapshot
charts   columns: made of records, and read for charts
queries  the port's questions, on asyncio
store    ``RocksStore``: the port
reader   ``RocksReader``: the same queries from another process
======== =======================================================================
"""

from terrazzo_adapters.rocksdb.reader import RocksReader
from terrazzo_adapters.rocksdb.store import RocksStore

__all__ = ["RocksReader", "RocksStore"]
