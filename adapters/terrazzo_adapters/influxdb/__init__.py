"""The time-series store on InfluxDB 1.x, 2.x and 3, through ``POST /write`` and ``GET /query``, which all have.

=========== ================================================================================
settings    where the server is and who we are
naming      series to measurement and tags, point names to fields, and back
lines       records to line protocol
server      HTTP: what the server is, writing, asking, and what went wrong
buckets     what only 2.x has: organisation, bucket, the mapping that makes it a database
ties        the tie-breaker that keeps two records of one microsecond apart
spool       the durable, bounded queue for while the server is away
queries     the port's questions as InfluxQL
replacement records in the place of others, whatever dies in between
delivery    one batch onto the server
writer      all that changes the server, by way of the spool where it has to wait
aggregates  buckets by InfluxDB's own functions
store       ``InfluxStore``: the port
=========== ================================================================================
"""

from terrazzo_adapters.influxdb.settings import InfluxSettings
from terrazzo_adapters.influxdb.store import InfluxStore

__all__ = ["InfluxSettings", "InfluxStore"]
