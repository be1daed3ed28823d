"""The sweep: ends silent connections and expired sessions, and publishes wills whose delay has passed."""

from __future__ import annotations

from collections.abc import Iterator

from mqtt5 import DisconnectReasonCode

from .connection_state import ConnectionState, ReadHold
from .connections import LAST_BYTES_S, NetworkConnection, longest_silence_s
from .core import BrokerCore
from .limited_log import limited_logger
from .refusals import Cause, Refusal

log = limited_logger("terrazzo_broker.sweep")

_PIECE, _DUE_PIECE = 500, 20  # connections, and sessions or wills, that are looked at in one turn of the loop
_ENDED_A_SWEEP = 1_000  # retained messages that are removed, because their topics have ended


def sweep(core: BrokerCore) -> Iterator[None]:
    """Checks connections and deadlines whose time has come, every ``sweep_interval_s``; yields between pieces."""
    now_s = core.clock()
    for number, connection in enumerate(core.connections.take_due(now_s), 1):
        if not number % _PIECE:
            yield
        try:
            again_s = _look_at(core, connection, now_s)
            if again_s is not None:
                core.connections.look_at(connection, again_s)
        except Exception:  # a fault of ours ends this connection alone; the others are looked at
            core.stats.internal_errors += 1
            log.exception("%s: internal error", connection)
            connection.transport.abort()
    now_us = core.now_us()
    core.storage.on_sweep(now_us)
    core.stats.retained_ended += core.retained.remove_ended(_ENDED_A_SWEEP)
    retained = core.retained.ledger.total
    core.stats.retained_messages, core.stats.retained_bytes, core.stats.retained_memory_bytes = retained
    for number, name in enumerate(core.storage.deadlines.pop_due(now_us), 1):
        if not number % _DUE_PIECE:
            yield
        kind, client_id = name[0], name[1:]
        session = core.sessions.get(client_id)
        if kind == "w":
            core.publish_will(client_id)
        elif session is not None and session.connection is None:  # [MQTT-4.1.0-2]
            detail = f"{session.queued} messages waited for it"
            core.hooks.tell_refused(Refusal(Cause.SESSION_EXPIRED, "", client_id, session.owner, detail=detail))
            core.end_session(session)


def _look_at(core: BrokerCore, connection: NetworkConnection, now_s: float) -> float | None:
    """Ends a connection whose time is over; else when to look again, None where there is no need to."""
    silent_s = now_s - connection.seen_s
    if connection.state is ConnectionState.CLOSED:
        if silent_s <= LAST_BYTES_S:
            return connection.seen_s + LAST_BYTES_S
        connection.transport.abort()
    elif connection.holds & ~ReadHold.DECIDING:
        connection.seen_s = now_s  # silent because it isn't read
        return now_s
    elif connection.state is ConnectionState.OPEN:
        # [MQTT-3.1.2-22]; [MQTT-3.1.2-24] of 3.1.1
        if not connection.keep_alive_s:
            return None
        if silent_s <= longest_silence_s(connection):
            return connection.seen_s + longest_silence_s(connection)
        core.stats.keepalive_timeouts += 1
        silent = f"silent for more than {connection.keep_alive_s * 3 // 2} s"
        connection.tell_refused(Cause.KEEP_ALIVE_TIMEOUT, DisconnectReasonCode.KEEP_ALIVE_TIMEOUT, silent)
        connection.close("keep-alive timeout", reason=DisconnectReasonCode.KEEP_ALIVE_TIMEOUT)
    else:  # section 3.1
        until_s = connection.born_s + core.settings.connect_timeout_s
        if now_s <= until_s:
            return until_s
        core.stats.connect_timeouts += 1
        log.warning("%s: no login within %s s", connection, core.settings.connect_timeout_s)
        connection.give_up()
    return None
