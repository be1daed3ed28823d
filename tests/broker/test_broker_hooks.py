"""What the embedding program decides, and what the broker makes of it."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode

from raw_client import Closed, RawClient, publish_4, until
from terrazzo_broker import Accept, Challenge, Inbound, PublishGrant, Refuse


def durable(client, topic):
    """Grants everything; durable below ``g/``."""
    return PublishGrant(topic, durable=topic.startswith("g/"), tag=f"tag of {topic}")


async def test_a_batch_is_acknowledged_only_when_settled(running, dial):
    running.hooks.grant = durable
    client = await dial("c", version=4)
    client.send(publish_4("g/r", b"1", qos=1, packet_id=1), publish_4("g/r", b"2", qos=1, packet_id=2))
    await until(lambda: running.hooks.batches)
    (batch,) = running.hooks.batches
    assert list(batch.messages) == [Inbound("tag of g/r", b"1"), Inbound("tag of g/r", b"2")]
    assert batch.client is running.broker.client("c")
    await client.silence()
    batch.settle()
    assert [await client.receive() for _ in range(2)] == [(0x40, b"\0\1"), (0x40, b"\0\2")]
    with pytest.raises(RuntimeError):
        batch.settle()


async def test_acknowledgements_keep_the_order_of_the_publishes(running, dial):  # [MQTT-4.6.0-2]
    running.hooks.grant = durable
    client = await dial("c", version=4)
    client.send(
        publish_4("open", b"", qos=1, packet_id=1),
        publish_4("g/r", b"", qos=1, packet_id=2),
        publish_4("open", b"", qos=1, packet_id=3),
    )
    assert await client.receive() == (0x40, b"\0\1")
    client.send(publish_4("open", b"", qos=1, packet_id=4))
    await client.silence()
    client.send(publish_4("g/r", b"", qos=1, packet_id=5))
    await until(lambda: len(running.hooks.batches) == 2)
    running.hooks.batches[1].settle()
    await client.silence()
    running.hooks.batches[0].settle()
    assert [(await client.receive())[1][1] for _ in range(4)] == [2, 3, 4, 5]


@pytest.mark.parametrize(("reason", "said"), [(0x99, 0x99), (0x8B, 0x80)])  # the second is no PUBACK's
async def test_refusals_in_a_batch_reach_mqtt_5_clients(running, dial, reason, said):
    running.hooks.grant = durable
    client = await dial("c")
    for number in (1, 2):
        client.publish("g/r", b"x", qos=1, packet_id=number)
    client.publish("g/r", b"x", qos=2, packet_id=3)
    await until(lambda: sum(len(each.messages) for each in running.hooks.batches) == 3)
    for batch in running.hooks.batches:
        batch.settle(dict.fromkeys(range(len(batch.messages)), reason))
    answers = [await client.receive() for _ in range(3)]
    assert [(each.packet_id, int(each.reason_code)) for each in answers] == [(1, said), (2, said), (3, said)]
    assert running.broker.sessions["c"].incoming == {}


async def test_a_repeated_qos_2_publish_is_taken_once(running, dial):
    running.hooks.grant = durable
    client = await dial("c", session_expiry_interval=60)
    client.publish("g/r", b"x", qos=2, packet_id=3)
    await until(lambda: running.hooks.batches)
    await client.finish()
    again = await dial("c", session_expiry_interval=60, clean_start=False)
    assert again.connack.session_present
    again.publish("g/r", b"x", qos=2, packet_id=3, duplicate=True)
    await again.silence()
    assert len(running.hooks.batches) == 1
    running.hooks.batches[0].settle()
    assert isinstance(await again.receive(), mqtt5.PubRecPacket)
    again.send(mqtt5.PubRelPacket(3))
    assert (await again.receive()).reason_code == mqtt5.PubCompReasonCode.SUCCESS


async def test_a_batch_outlives_its_connection(running, dial):
    running.hooks.grant = durable
    client = await dial("c", version=4)
    client.publish("g/r", b"x", qos=1, packet_id=3)
    await until(lambda: running.hooks.batches)
    await client.finish()
    await until(lambda: running.broker.client("c") is None)
    running.hooks.batches[0].settle()


async def test_topics_are_rewritten_before_anyone_sees_them(running, dial):
    running.hooks.grant = lambda client, topic: PublishGrant(f"g/{client.client_id}/{topic[2:]}", durable=True)
    subscriber, client = await dial("s"), await dial("c")
    await subscriber.subscribe(("g/#", 1))
    for qos in (0, 1, 0, 1):
        client.publish("g/r", b"x", qos=qos, **({"packet_id": 1} if qos else {}))
    topics = []
    for _ in range(4):
        message = await subscriber.receive()
        topics.append(message.topic)
    assert topics == ["g/c/r"] * 4
    assert running.hooks.asked.count("g/r") == 1  # cached by connection and topic


async def test_wills_and_retained_publishes_are_durable_too(running, dial):
    running.hooks.grant = durable
    client = await dial("c", will=mqtt5.Will("g/w", payload=b"gone", qos=mqtt5.QoS(1)))
    client.publish("g/r", b"x", qos=1, packet_id=1, retain=True)
    await until(lambda: running.hooks.batches)
    running.hooks.batches[0].settle()
    await client.receive()
    client.writer.transport.abort()
    await until(lambda: len(running.hooks.batches) == 2)
    assert [each.payload for each in running.hooks.batches[1].messages] == [b"gone"]
    running.hooks.batches[1].settle()


async def test_correlation_data_reaches_the_hook(running, dial):
    running.hooks.grant = durable
    client = await dial("c")
    client.publish("g/n", b"x", correlation_data=b"\xff\x00")
    await until(lambda: running.hooks.batches)
    assert running.hooks.batches[0].messages[0].correlation_data == b"\xff\x00"


async def test_refused_publishes(running, dial):
    running.hooks.grant = lambda client, topic: None
    five, four = await dial("five"), await dial("four", version=4)
    five.publish("t", b"x", qos=1, packet_id=1)
    five.publish("t", b"x", qos=2, packet_id=2)
    five.publish("t", b"x")
    assert [int((await five.receive()).reason_code) for _ in range(2)] == [0x87, 0x87]
    four.publish("t", b"x", qos=1, packet_id=1)
    assert await four.receive() == (0x40, b"\0\1")
    await five.silence()
    assert running.broker.stats.publishes_refused == 4


async def test_refused_subscriptions(running, dial):
    running.hooks.may_subscribe = lambda client, pattern: pattern != "secret" and not pattern.startswith("$share")
    five, four = await dial("five"), await dial("four", version=4)
    assert [int(code) for code in (await five.subscribe(("a", 1), ("secret", 1), ("$share/g/a", 0))).reason_codes] == [
        1,
        0x87,
        0x87,
    ]
    assert await four.subscribe(("secret", 1), ("a", 2)) == (0x90, b"\0\1\x80\x02")
    assert ("subscribed", "five", ("a",)) in running.hooks.events


async def test_forgotten_grants_are_asked_for_again(running, dial):
    client = await dial("c")
    for _ in range(3):
        client.publish("t", b"x", qos=1, packet_id=1)
        await client.receive()
    assert running.hooks.asked == ["t"]
    running.hooks.grant = lambda client, topic: None
    running.broker.forget_grants("c")
    client.publish("t", b"x", qos=1, packet_id=1)
    assert int((await client.receive()).reason_code) == 0x87


@pytest.mark.parametrize(
    ("reason", "return_code"), [(0x86, 4), (0x87, 5), (0x88, 3), (0x89, 3), (0x9F, 3), (0x85, 2), (0x8A, 5)]
)
async def test_refused_connects(running, dial, reason, return_code):
    async def refuse(request):
        return Refuse(ConnAckReasonCode(reason), "no")

    running.hooks.verdict = refuse
    five, four = await dial("five"), await dial("four", version=4)
    assert (int(five.connack.reason_code), five.connack.reason_str) == (reason, "no")
    assert four.connack == (0x20, bytes((0, return_code)))
    await five.closed()
    await four.closed()
    assert running.hooks.events == []


async def test_a_failing_hook_refuses(running, dial):
    async def fail(request):
        raise RuntimeError("database gone")

    running.hooks.verdict = fail
    client = await dial("c")
    assert client.connack.reason_code == ConnAckReasonCode.SERVER_UNAVAILABLE


async def test_accept_overrides_what_the_client_asked_for(running, dial):
    async def accept(request):
        return Accept("x", keep_alive_s=7, session_expiry_s=11)

    running.hooks.verdict = accept
    client = await dial("c", keep_alive=60, session_expiry_interval=5)
    assert (client.connack.server_keep_alive, client.connack.session_expiry_interval) == (7, 11)
    assert running.broker.client("c").keep_alive_s == 7
    assert running.broker.client("c").identity == "x"


async def enhanced(request):
    """Two steps: the client says 1, then 2."""

    async def second(data):
        return Accept("second", auth_data=b"bye") if data == b"2" else Refuse(ConnAckReasonCode.NOT_AUTHORIZED)

    if request.auth_data != b"1":
        return Refuse(ConnAckReasonCode.NOT_AUTHORIZED)
    return Challenge(b"next", second)


def auth(data, reason=mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION, method="TWO"):
    return mqtt5.AuthPacket(reason_code=reason, authentication_method=method, authentication_data=data)


async def test_enhanced_authentication_and_its_repetition(running, dial):
    running.hooks.verdict = enhanced
    client = await dial("c", authentication_method="TWO", authentication_data=b"1")
    challenge = client.connack
    assert (challenge.authentication_method, challenge.authentication_data) == ("TWO", b"next")
    client.send(auth(b"2"))
    connack = await client.receive()
    assert (connack.reason_code, connack.authentication_data) == (ConnAckReasonCode.SUCCESS, b"bye")
    client.send(auth(b"1", mqtt5.AuthReasonCode.RE_AUTHENTICATE))
    assert (await client.receive()).authentication_data == b"next"
    assert running.hooks.requests[-1].reauthentication
    client.publish("meanwhile", qos=1, packet_id=1)
    assert isinstance(await client.receive(), mqtt5.PubAckPacket)
    client.send(auth(b"2"))
    assert (await client.receive()).reason_code == mqtt5.AuthReasonCode.SUCCESS
    client.send(auth(b"wrong", mqtt5.AuthReasonCode.RE_AUTHENTICATE))
    assert (await client.receive()).reason_code == DisconnectReasonCode.NOT_AUTHORIZED
    await client.closed()


async def test_enhanced_authentication_out_of_turn(running, dial):
    running.hooks.verdict = enhanced
    other = await dial("c", authentication_method="TWO", authentication_data=b"1")
    other.send(auth(b"2", method="OTHER"))
    assert (await other.receive()).reason_code == ConnAckReasonCode.PROTOCOL_ERROR
    hasty = await dial("c", authentication_method="TWO", authentication_data=b"1")
    hasty.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a")]))
    assert (await hasty.receive()).reason_code == ConnAckReasonCode.PROTOCOL_ERROR
    failing = await dial("c", authentication_method="TWO", authentication_data=b"1")
    failing.send(auth(b"3"))
    assert (await failing.receive()).reason_code == ConnAckReasonCode.NOT_AUTHORIZED


async def test_send_reaches_one_client_and_tells_how(running, dial):
    outcomes = []
    send = running.broker.send
    assert not send("c", "p2p/c", b"x", on_outcome=outcomes.append)
    client, other = await dial("c"), await dial("other")
    assert not send("c", "p2p/c", b"x", on_outcome=outcomes.append)
    await client.subscribe(("p2p/c", 0))
    assert not send("c", "p2p/c", b"x", on_outcome=outcomes.append)
    await client.subscribe(("p2p/c", 1))
    await other.subscribe(("#", 1))
    assert send("c", "p2p/c", b"x", correlation_data=b"id", response_topic="g/c/n", on_outcome=outcomes.append)
    message = await client.receive()
    assert (message.payload, message.correlation_data, message.response_topic) == (b"x", b"id", "g/c/n")
    assert not outcomes
    client.send(mqtt5.PubAckPacket(message.packet_id))
    await until(lambda: outcomes)
    assert outcomes == [(True, 0)]
    await other.silence()


async def test_send_survives_a_disconnect_with_the_session(running, dial):
    outcomes = []
    client = await dial("c", session_expiry_interval=60)
    await client.subscribe(("p2p/c", 1))
    for number in range(2):
        assert running.broker.send("c", "p2p/c", b"%d" % number, on_outcome=outcomes.append)
    first, second = await client.receive(), await client.receive()
    client.send(mqtt5.PubAckPacket(second.packet_id))
    await until(lambda: outcomes)
    await client.finish()
    await until(lambda: running.broker.client("c") is None)
    assert not running.broker.send("c", "p2p/c", b"2", on_outcome=outcomes.append)
    again = await dial("c", session_expiry_interval=60, clean_start=False)
    message = await again.receive()
    assert (message.payload, message.duplicate, message.packet_id) == (b"0", True, first.packet_id)
    again.send(mqtt5.PubAckPacket(message.packet_id, reason_code=mqtt5.PubAckReasonCode.QUOTA_EXCEEDED))
    await until(lambda: len(outcomes) == 2)
    assert outcomes[1] == (True, 0x97)
    assert running.broker.send("c", "p2p/c", b"3", on_outcome=outcomes.append)
    assert running.broker.disconnect("c", 0x98, end_session=True)
    assert outcomes[2] == (False, 0)
    assert "c" not in running.broker.sessions


async def test_disconnect_names_the_reason(running, dial):
    client = await dial("c")
    assert running.broker.disconnect("c", 0x98)
    assert (await client.receive()).reason_code == DisconnectReasonCode.ADMINISTRATIVE_ACTION
    await client.closed()
    assert not running.broker.disconnect("c", 0x98)
    assert running.hooks.events[-1][:2] == ("disconnected", "c")


async def test_paused_intake_reads_nothing_and_closes_nobody(running, dial):
    client = await dial("c", keep_alive=1)
    await running_settled(client)
    running.broker.pause_intake()
    late = await RawClient.open(running.port)
    client.publish("t", b"x", qos=1, packet_id=1)
    with pytest.raises(TimeoutError):
        await client.receive(timeout_s=2.0)
    assert (await late.connect("late")).reason_code == ConnAckReasonCode.SUCCESS, "what becomes of a login is told"
    late.publish("t", b"y", qos=1, packet_id=2)
    with pytest.raises(TimeoutError):
        await late.receive(timeout_s=0.5)
    running.broker.resume_intake()
    assert (await client.receive()).packet_id == 1
    assert (await late.receive()).packet_id == 2
    await late.finish()


async def running_settled(client) -> None:
    """The broker has handled all that the client sent."""
    await client.silence()


async def test_publish_counts_receivers_and_keeps_retained(running, dial):
    assert running.broker.publish("t/1", b"x", retain=True) == 0
    first, second = await dial("a"), await dial("b", version=4)
    await first.subscribe(("t/+", 1))
    await second.subscribe(("t/1", 0))
    assert (await first.receive()).retain
    assert (await second.receive())[0] == 0x31
    assert running.broker.publish("t/1", b"y", qos=1) == 2
    assert (await first.receive()).payload == b"y"
    assert (await second.receive())[1].endswith(b"y")


async def test_close_says_goodbye(start):
    running = await start()
    client = await RawClient.open(running.port)
    await client.connect("c")
    await running.broker.close(2.0)
    assert (await client.receive()).reason_code == DisconnectReasonCode.SERVER_SHUTTING_DOWN
    with pytest.raises(Closed):
        await client.receive()
    await client.finish()
    with pytest.raises(OSError, match="Connect call failed"):
        await RawClient.open(running.port)
