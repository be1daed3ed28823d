"""What time alone brings about: silent clients, expired sessions, wills whose delay has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqtt5 import DisconnectReasonCode

from .limited_log import limited_logger
from .state import State

if TYPE_CHECKING:
    from .broker import Broker
    from .connection import Connection

log = limited_logger("terrazzo_broker.sweep")

_LAST_BYTES_S = 5.0  # how long a closed connection may take to read what was written to it


def sweep(broker: Broker) -> None:
    """Looks at every connection and at whatever is due; one timer for all."""
    now_s = broker.clock()
    for connection in list(broker.connections):
        _look_at(connection, now_s)
    now_us = broker.now_us()
    broker.storage.on_sweep(now_us)
    for name in broker.storage.deadlines.pop_due(now_us):
        kind, client_id = name[0], name[1:]
        session = broker.sessions.get(client_id)
        if kind == "w":
            broker.publish_will(client_id)
        elif session is not None and session.connection is None:  # [MQTT-4.1.0-2]
            broker.end_session(session)


def _look_at(connection: Connection, now_s: float) -> None:
    broker = connection.broker
    silent_s = now_s - connection.seen_s
    if connection.state is State.CLOSED:
        if silent_s > _LAST_BYTES_S:
            connection.transport.abort()
    elif connection.holds:
        connection.seen_s = now_s  # silent because it isn't read
    elif connection.state is State.OPEN:
        # [MQTT-3.1.2-22]; [MQTT-3.1.2-24] of 3.1.1
        if connection.keep_alive_s and silent_s > connection.keep_alive_s * 1.5:
            broker.stats.keepalive_timeouts += 1
            connection.close("keep-alive timeout", reason=DisconnectReasonCode.KEEP_ALIVE_TIMEOUT)
    elif now_s - connection.born_s > broker.settings.connect_timeout_s:  # section 3.1
        broker.stats.connect_timeouts += 1
        log.warning("%s: no login within %s s", connection, broker.settings.connect_timeout_s)
        connection.close("no CONNECT in time")
