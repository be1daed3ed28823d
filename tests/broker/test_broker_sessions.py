"""What outlives a connection, and what ends with it: sessions, wills, keep-alive, takeover."""

from __future__ import annotations

import asyncio

import mqtt5
import pytest
from mqtt5 import DisconnectReasonCode, QoS

from raw_client import until


async def gone(running, client, client_id: str) -> None:
    """Cuts the line and waits until the broker has noticed."""
    client.writer.transport.abort()
    await until(lambda: running.broker.client(client_id) is None)


async def test_unacknowledged_messages_come_again_in_order(running, dial):  # [MQTT-4.4.0-1] [MQTT-4.6.0-1]
    client = await dial("c", session_expiry_interval=60)
    await client.subscribe(("t", 2))
    publisher = await dial("p")
    for number, qos in enumerate((1, 2, 1, 2)):
        publisher.publish("t", b"%d" % number, qos=qos, packet_id=number + 1)
    first = [await client.receive() for _ in range(4)]
    client.send(mqtt5.PubRecPacket(first[1].packet_id))
    assert isinstance(await client.receive(), mqtt5.PubRelPacket)
    client.send(mqtt5.PubAckPacket(first[0].packet_id))
    await client.silence()
    await gone(running, client, "c")
    publisher.publish("t", b"4", qos=1, packet_id=9)
    await until(lambda: running.broker.sessions["c"].queued == 1)
    again = await dial("c", clean_start=False)
    assert again.connack.session_present
    second = [await again.receive() for _ in range(4)]
    assert isinstance(second[0], mqtt5.PubRelPacket)
    assert second[0].packet_id == first[1].packet_id
    assert [(each.payload, each.duplicate) for each in second[1:]] == [(b"2", True), (b"3", True), (b"4", False)]
    assert [each.packet_id for each in second[1:3]] == [each.packet_id for each in first[2:]]


async def test_redelivery_keeps_to_a_smaller_receive_maximum(running, dial):
    client = await dial("c", session_expiry_interval=60)
    await client.subscribe(("t", 1))
    for number in range(3):
        running.broker.publish("t", b"%d" % number, qos=1)
    for _ in range(3):
        await client.receive()
    await gone(running, client, "c")
    again = await dial("c", clean_start=False, receive_max=1)
    for number in range(3):
        message = await again.receive()
        assert (message.payload, message.duplicate) == (b"%d" % number, True)
        await again.silence()
        again.send(mqtt5.PubAckPacket(message.packet_id))


async def test_a_clean_start_forgets(running, dial):  # [MQTT-3.1.2-4]
    client = await dial("c", session_expiry_interval=60)
    await client.subscribe(("t", 1))
    await gone(running, client, "c")
    running.broker.publish("t", b"lost", qos=1)
    again = await dial("c", session_expiry_interval=60)
    assert not again.connack.session_present
    running.broker.publish("t", b"lost too", qos=1)
    await again.silence()


async def test_a_3_1_1_session_lasts(running, dial):
    client = await dial("c", version=4, clean=False)
    assert client.connack == (0x20, b"\0\0")
    await client.subscribe(("t", 1))
    await gone(running, client, "c")
    running.broker.publish("t", b"kept", qos=1)
    again = await dial("c", version=4, clean=False)
    assert again.connack == (0x20, b"\1\0")  # [MQTT-3.2.2-2]
    assert (await again.receive())[1].endswith(b"kept")
    assert ("subscribed", "c", ("t",)) in running.hooks.events
    clean = await dial("c", version=4)
    assert clean.connack == (0x20, b"\0\0")


async def test_a_session_expires(running, dial):  # [MQTT-3.1.2-23]
    client = await dial("c", session_expiry_interval=1)
    await client.subscribe(("t", 1))
    await gone(running, client, "c")
    assert "c" in running.broker.sessions
    await until(lambda: "c" not in running.broker.sessions)
    assert running.broker.stats.subscriptions == 0


async def test_takeover(running, dial):  # [MQTT-3.1.4-3]
    first = await dial("c", session_expiry_interval=60)
    await first.subscribe(("t", 1))
    second = await dial("c", clean_start=False, session_expiry_interval=60)
    assert second.connack.session_present
    assert (await first.receive()).reason_code == DisconnectReasonCode.SESSION_TAKEN_OVER
    await first.closed()
    running.broker.publish("t", b"x")
    assert (await second.receive()).payload == b"x"
    assert [event for event in running.hooks.events if event[0] != "subscribed"] == [
        ("connected", "c"),
        ("disconnected", "c", "taken over"),
        ("connected", "c"),
    ]


def will(**options) -> dict:
    """A will on ``w``."""
    return {"will": mqtt5.Will("w", payload=b"gone", **options)}


@pytest.mark.parametrize("version", [4, 5])
async def test_a_will_is_sent_unless_the_client_says_goodbye(running, dial, version):  # [MQTT-3.1.2-8] [MQTT-3.1.2-10]
    watcher = await dial("w")
    await watcher.subscribe(("w", 2))
    options = will(qos=QoS(1), retain=True) if version == 5 else {"will": ("w", b"gone", 1, True)}
    polite = await dial("polite", version=version, **options)
    polite.send(b"\xe0\x00")
    await polite.closed()
    await watcher.silence()
    rude = await dial("rude", version=version, **options)
    await gone(running, rude, "rude")
    message = await watcher.receive()
    assert (message.payload, int(message.qos), message.retain) == (b"gone", 1, False)
    late = await dial("late")
    await late.subscribe(("w", 0))
    assert (await late.receive()).retain


async def test_a_disconnect_may_ask_for_the_will(dial):
    watcher, client = await dial("w"), await dial("c", **will(user_properties=[("a", "b")], content_type="c"))
    await watcher.subscribe(("w", 0))
    client.send(b"\xe0\x01\x04")
    message = await watcher.receive()
    assert (message.user_properties, message.content_type) == ([("a", "b")], "c")


async def test_a_will_waits_for_its_delay(running, dial):  # [MQTT-3.1.3-9]
    watcher = await dial("w")
    await watcher.subscribe(("w", 0))
    client = await dial("c", session_expiry_interval=60, **will(will_delay_interval=1))
    await gone(running, client, "c")
    await watcher.silence()
    back = await dial("c", clean_start=False, session_expiry_interval=60, **will(will_delay_interval=1))
    await gone(running, back, "c")
    await watcher.silence()
    assert (await watcher.receive()).payload == b"gone"
    await watcher.silence()


async def test_a_will_goes_when_the_session_ends_before_its_delay(running, dial):
    watcher = await dial("w")
    await watcher.subscribe(("w", 0))
    client = await dial("c", session_expiry_interval=1, **will(will_delay_interval=1000))
    await gone(running, client, "c")
    assert (await watcher.receive()).payload == b"gone"
    other = await dial("d", session_expiry_interval=60, **will(will_delay_interval=1000))
    await gone(running, other, "d")
    await dial("d", session_expiry_interval=60)  # a clean start ends the session too
    assert (await watcher.receive()).payload == b"gone"


async def test_a_silent_client_is_closed_at_one_and_a_half_keep_alives(running, dial):  # [MQTT-3.1.2-22]
    watcher = await dial("w")
    await watcher.subscribe(("w", 0))
    loop = asyncio.get_running_loop()
    silent = await dial("c", keep_alive=1, **will())
    started_s = loop.time()
    assert (await silent.receive()).reason_code == DisconnectReasonCode.KEEP_ALIVE_TIMEOUT
    assert 1.4 < loop.time() - started_s < 3
    assert (await watcher.receive()).payload == b"gone"
    assert running.hooks.events[-1] == ("disconnected", "c", "keep-alive timeout")
    busy = await dial("d", keep_alive=1)
    for _ in range(4):
        await asyncio.sleep(0.5)  # the clock is what this is about: half a keep-alive
        await busy.silence()


async def test_who_never_connects_is_closed(start, dial):
    running = await start(connect_timeout_s=0.3)
    client = await dial(None, port=running.port)
    await client.closed()
    await until(lambda: running.broker.stats.connections == 0)
