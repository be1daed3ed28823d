"""The embedded time-series store, on RocksDB.

======== =======================================================================
keys     the keys and values on disk
batch    encodes records as keys and values, and what removes them again
engine   the one writer: commits, retention, recovery after a failed write
hours    the hours of a series: how many records each has, which names they carry
blocks   several records of a series in one entry
extents  the segments of a series: where each lies
segment_cache what was decoded of segments lately
sealed   the records of a series, those of segments among them
counts   how many records some series have in a range
merge    records of several series in order
reads    the queries, on a snapshot
charts   columns: built from records, and read for charts
queries  the port's queries, on asyncio
sealing  what is to be sealed, and the commit that does it
sweep    a look at all series for it
encoder  the process that makes segments (``segment_process``), asked
sealer   the task that seals in the background
verify   reads all segments, for doctor
store    ``RocksStore``: the port
======== =======================================================================
"""

from terrazzo_adapters.rocksdb.store import RocksStore

__all__ = ["RocksStore"]
