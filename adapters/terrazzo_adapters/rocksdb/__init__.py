"""The embedded time-series store, on RocksDB.

======== =======================================================================
keys     the keys and values on disk
batch    encodes records as keys and values, and what removes them again
engine   the one writer: commits, retention, recovery after a failed write
hours    the hours of a series: how many records each has, which names they carry
blocks   several records of a series in one entry
merge    records of several series in order
reads    the queries, on a snapshot
charts   columns: built from records, and read for charts
queries  the port's queries, on asyncio
store    ``RocksStore``: the port
======== =======================================================================
"""

from terrazzo_adapters.rocksdb.store import RocksStore

__all__ = ["RocksStore"]
