"""The embedded time-series store, on RocksDB.

======== =======================================================================
keys     what a key and a value look like on disk
batch    records to keys and values, and the way back
engine   the one writer: commits, retention, recovery after a failed write
hours    of a series: how many records each has, which names they carry
blocks   several records of a series in one entry
merge    records of several series in order
reads    the queries, over a snapshot
charts   columns: made of records, and read for charts
queries  the port's questions, on asyncio
store    ``RocksStore``: the port
======== =======================================================================
"""

from terrazzo_adapters.rocksdb.store import RocksStore

__all__ = ["RocksStore"]
