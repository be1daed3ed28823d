"""The replicated log and its records on NATS JetStream, on nats-py (the extra ``cluster``).

=========== ==========================================================================
settings    where the servers are, and what is asked of them
connection  one connection: requests to the JetStream API, errors translated
streams     makes and checks streams
monitor     reads of the servers' monitoring whether they sync before they acknowledge
log         ``JetStreamLog``: frames, appended by the number of the last
key_stream  what streams have in common whose messages have keys
keyed       ``JetStreamKeyed``: the newest message of each key, in one order
queues      ``JetStreamQueues``: messages in queues, each with a key
calls       requests from node to node, past any stream
reader      frames in order, by number
records     ``JetStreamRecords``: small values, changed by compare-and-set
=========== ==========================================================================
"""

from terrazzo_adapters.jetstream.calls import JetStreamCalls
from terrazzo_adapters.jetstream.connection import Connection, JetStreamStats
from terrazzo_adapters.jetstream.keyed import JetStreamKeyed
from terrazzo_adapters.jetstream.log import JetStreamLog
from terrazzo_adapters.jetstream.monitor import check_servers
from terrazzo_adapters.jetstream.queues import JetStreamQueues
from terrazzo_adapters.jetstream.records import JetStreamRecords
from terrazzo_adapters.jetstream.settings import JetStreamSettings

__all__ = [
    "Connection",
    "JetStreamCalls",
    "JetStreamKeyed",
    "JetStreamLog",
    "JetStreamQueues",
    "JetStreamRecords",
    "JetStreamSettings",
    "JetStreamStats",
    "check_servers",
]
