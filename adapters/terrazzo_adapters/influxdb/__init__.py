"""The time-series store on InfluxDB 1.x, 2.x and 3, through ``POST /write`` and ``GET /query``, which all three have.

=========== ================================================================================
settings    the server, the database and the credentials
naming      series to measurement and tags, point names to fields, and back
lines       records to line protocol
server      HTTP: version, writes, queries, errors
buckets     what only 2.x has: organisation, bucket, the mapping that makes it a database
ties        the tie-breaker that keeps two records of one microsecond apart
spool       the durable, bounded queue for while the server is away
queries     the port's queries as InfluxQL
replacement replaces the records of a range, also across crashes
delivery    writes one batch to the server
writer      all changes, through the spool if the server can't take them at once
aggregates  buckets by InfluxDB's own functions
store       ``InfluxStore``: the port
=========== ================================================================================
"""

from terrazzo_adapters.influxdb.settings import InfluxSettings
from terrazzo_adapters.influxdb.store import InfluxStore

__all__ = ["InfluxSettings", "InfluxStore"]
