"""Enhanced authentication and what the hooks refuse, by a broker in this process that has something to check."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import conformance_wire as wire
import pytest
from conformance_peer import Peer
from conformance_wire import AUTH, CONNACK, DISCONNECT, Will
from mqtt5 import ConnAckReasonCode

from mqtt_bytes import frame
from terrazzo_broker import Accept, Broker, BrokerSettings, PublishGrant, Refuse
from terrazzo_broker.hooks import Batch, Challenge, Client, ConnectRequest, Verdict

CONTINUE, AGAIN = 0x18, 0x19
PROTOCOL_ERROR, NOT_AUTHORIZED, BAD_METHOD = 0x82, 0x87, 0x8C


class Doorkeeper:
    """Knows the method TWO: ``1`` is answered by ``next``, and then ``2`` lets in with ``bye``."""

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        if request.auth_method not in (None, "TWO"):
            return Refuse(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD, "another method")
        if request.auth_method and request.auth_data == b"1":
            return Challenge(b"next", self.proceed)
        return Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "who is it?") if request.auth_method else Accept()

    async def proceed(self, data: bytes) -> Verdict:
        return Accept(auth_data=b"bye") if data == b"2" else Refuse(ConnAckReasonCode.NOT_AUTHORIZED, "wrong")

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        return PublishGrant(topic, durable=topic.startswith("broken"))

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        return not topic_filter.startswith("secret")

    def take(self, batch: Batch) -> None:
        raise RuntimeError("the disk is gone")

    def on_connected(self, client: Client) -> None: ...

    def on_disconnected(self, client: Client, reason: str) -> None: ...

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None: ...


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """In place of the process."""
    broker = Broker(BrokerSettings(sys_interval_s=0, sweep_interval_s=0.05), Doorkeeper())
    yield await broker.listen_tcp("127.0.0.1", 0)
    await broker.close(1.0)


def auth(reason: int, data: bytes | None, method: str = "TWO") -> bytes:
    """An AUTH."""
    properties = {"auth_method": method} | ({} if data is None else {"auth_data": data})
    return frame(AUTH << 4, bytes((reason,)), wire.encode_properties(5, properties))


async def challenged(dial, name: str, **options) -> Peer:
    """A client that has been asked for the second step."""
    peer = await dial(5)
    peer.send(wire.connect(name, version=5, auth_method="TWO", auth_data=b"1", **options))
    question = await peer.expect(AUTH)
    assert (question.reason, question.auth_method, question.auth_data) == (CONTINUE, "TWO", b"next")
    return peer


async def admitted(dial, name: str, **options) -> Peer:
    """A client that has answered it."""
    peer = await challenged(dial, name, **options)
    peer.send(auth(CONTINUE, b"2"))
    connack = await peer.expect(CONNACK)
    assert (connack.reason, connack.auth_method, connack.auth_data) == (0, "TWO", b"bye")
    return peer


async def test_every_step_names_the_method(dial, name):
    peer = await admitted(dial, name)
    await peer.silence()


async def test_a_wrong_answer_is_refused(dial, name):
    peer = await challenged(dial, name)
    peer.send(auth(CONTINUE, b"3"))
    packets = await peer.end()
    assert [(each.kind, each.reason) for each in packets] == [(CONNACK, NOT_AUTHORIZED)]


@pytest.mark.parametrize(("method", "reason"), [("ONE", BAD_METHOD), ("TWO", NOT_AUTHORIZED)])
async def test_a_first_word_that_is_refused(dial, name, method, reason):
    peer = await dial(5)
    assert (await peer.connect(name, auth_method=method)).reason == reason
    assert await peer.end() == []


@pytest.mark.parametrize(
    "packet",
    [
        b"\xc0\x00",
        wire.publish("t", version=5),
        wire.subscribe(1, ("t", 0), version=5),
        wire.connect("again", version=5),
        auth(CONTINUE, b"2", "ONE"),
        auth(AGAIN, b"1"),
        auth(0, b"2"),
    ],
    ids=["PINGREQ", "PUBLISH", "SUBSCRIBE", "CONNECT", "another method", "too early", "success"],
)
async def test_only_auth_may_follow(dial, name, packet):
    peer = await challenged(dial, name)
    peer.send(packet)
    packets = await peer.end()
    assert [(each.kind, each.reason) for each in packets] == [(CONNACK, PROTOCOL_ERROR)]


async def test_a_client_may_give_up(dial, name):
    watcher = await dial(5, name + "w")
    await watcher.subscribe((name, 0))
    peer = await challenged(dial, name, will=Will(name))
    peer.send(wire.disconnect())
    assert await peer.end() == []
    await watcher.silence()  # there was no session that a will could belong to


async def test_re_authentication(dial, name):
    peer = await admitted(dial, name)
    peer.send(auth(AGAIN, b"1"))
    question = await peer.expect(AUTH)
    assert (question.reason, question.auth_method, question.auth_data) == (CONTINUE, "TWO", b"next")
    await peer.subscribe((name, 1))  # all else goes on meanwhile
    peer.send(auth(CONTINUE, b"2"))
    outcome = await peer.expect(AUTH)
    assert (outcome.reason, outcome.auth_method, outcome.auth_data) == (0, "TWO", b"bye")
    peer.send(wire.publish(name, version=5))
    await peer.take()


async def test_re_authentication_that_fails(dial, name):
    watcher = await dial(5, name + "w")
    await watcher.subscribe((name, 0))
    peer = await admitted(dial, name, will=Will(name))
    peer.send(auth(AGAIN, b"1"))
    await peer.expect(AUTH)
    peer.send(auth(CONTINUE, b"3"))
    assert await peer.refused() == NOT_AUTHORIZED
    assert (await watcher.take()).payload == b"gone"


@pytest.mark.parametrize("packet", [auth(AGAIN, b"1", "ONE"), auth(CONTINUE, b"2"), auth(0, None)])
async def test_re_authentication_out_of_turn(dial, name, packet):
    peer = await admitted(dial, name)
    peer.send(packet)
    assert await peer.refused() == PROTOCOL_ERROR


async def test_nothing_is_said_about_auth_without_problem_information(dial, name):
    peer = await admitted(dial, name, request_problem_info=0)
    peer.send(auth(AGAIN, b"1"))
    assert set((await peer.expect(AUTH)).properties) == {"auth_method", "auth_data"}


async def test_a_subscription_that_is_not_permitted(dial, version, name):
    peer = await dial(version, name)
    assert await peer.subscribe(("secret/#", 1), (name, 1)) == [NOT_AUTHORIZED if version == 5 else 0x80, 1]


async def test_an_error_of_our_own_ends_the_connection_it_came_up_in(dial, version, name):
    peer, other = await dial(version, name), await dial(version, name + "o")
    peer.send(wire.publish("broken", version=version, qos=1, packet_id=1))
    packets = await peer.end()
    assert [(each.kind, each.reason) for each in packets] == ([(DISCONNECT, 0x83)] if version == 5 else [])
    await other.silence()
