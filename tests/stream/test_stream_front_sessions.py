"""Persistent sessions and wills across fronts that are killed: real processes, and clients of paho."""

from __future__ import annotations

import threading
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from test_stream_front_hearing import Hearing, figure, stand, wait_sessions

from durability.test_acknowledged_is_stored import stored_numbers
from nats_servers import NatsServer
from postgresql_server import PostgreSQL
from running import Platform, wait_for


class Lasting(Hearing):
    """A terminal whose session lasts ten minutes; ``present``: whether the front had it."""

    def __init__(self, at: Platform, uid: str, *, will: tuple[bytes, int] | None = None) -> None:
        self.heard: list[tuple[str, bytes, int, bool]] = []
        self._subscribed = threading.Event()
        self.codes: list[int] = []
        self.present: list[bool] = []
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, uid, protocol=paho.MQTTv5)
        self.client.username_pw_set(f"u-{uid}", f"pin-{uid}")
        self.client.on_message = self._on_message
        self.client.on_subscribe = self._on_subscribe
        self.client.on_connect = lambda _c, _d, flags, _code, _p: self.present.append(flags.session_present)
        if will is not None:
            delay = Properties(PacketTypes.WILLMESSAGE)
            delay.WillDelayInterval = will[1]
            self.client.will_set(f"g/{uid}/r", will[0], 1, properties=delay)
        lasts = Properties(PacketTypes.CONNECT)
        lasts.SessionExpiryInterval = 600
        self.client.connect("127.0.0.1", at.mqtt, clean_start=False, properties=lasts)
        self.client.loop_start()
        wait_for(lambda: self.present, f"{uid} is connected", timeout_s=60)

    def leave(self) -> None:
        """Cuts the connection without a word; the session goes on."""
        self.client.loop_stop()
        socket = self.client.socket()
        assert socket is not None
        socket.close()


@pytest.mark.timeout(500)
def test_a_session_and_a_will_outlive_their_front(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    with stand(tmp_path, postgresql, nats_server, "fronts-sessions") as found:
        first, second = found.cluster.front("f1"), found.cluster.front("f2")
        for uid in ("se-h", "se-w", "se-l"):
            found.leader.add_terminal(uid, found.config, topic="pub:r,a,v,p,i,n;sub:g/#")
        telling, at_leader = found.terminal("se-t", second), found.terminal("se-u", found.leader)
        hearing = Lasting(first, "se-h")
        found.clients.append(hearing)
        assert hearing.present == [False]
        assert hearing.subscribe("g/+/a") == 2
        watching = Lasting(second, "se-l")
        found.clients.append(watching)
        assert watching.subscribe("g/+/r", 1) == 1
        found.clients.append(Lasting(first, "se-w", will=(b'{"n":99}', 0)))
        for at in (first, second, found.leader):
            wait_sessions(at, 3, 2)
        telling.publish("g/se-t/a", b'{"n":0}', 2)
        wait_for(lambda: hearing.numbers() == [b'{"n":0}'], "heard while it is there", timeout_s=60)
        for each in (hearing, found.clients[-1]):
            each.client.loop_stop()  # they don't come back by themselves
        first.kill()
        for number in range(1, 6):
            telling.publish("g/se-t/a", b'{"n":%d}' % number, number % 3 or 1)
        at_leader.publish("g/se-u/a", b'{"n":6}')
        wait_for(lambda: watching.numbers() == [b'{"n":99}'], "the will of the killed front's client", timeout_s=90)
        again = Lasting(second, "se-h")
        found.clients.append(again)
        assert again.present == [True]
        wait_for(lambda: len(again.heard) >= 6, "what was published meanwhile", timeout_s=60)
        first = found.cluster.front("f1")
        at_first = found.terminal("se-v", first)
        at_first.publish("g/se-v/a", b'{"n":7}')
        wait_for(lambda: len(again.heard) >= 7, "and what is published since", timeout_s=60)
        assert sorted(again.numbers()) == [b'{"n":%d}' % number for number in range(1, 8)], "each once"
        in_order = [payload for _, payload, qos, _ in again.heard if qos == 1]  # those at QoS 2 are told when released
        assert in_order == sorted(in_order)
        assert watching.numbers() == [b'{"n":99}'], "once"
        wait_for(lambda: stored_numbers(found.leader, "se-w") == [99], "the will is stored, once", timeout_s=60)
        found.leader.call("delete_terminal", uid="se-l")
        wait_for(lambda: figure(first, "terrazzo_sessions_known") == 2, "a deleted terminal's is ended", timeout_s=60)
