"""What the broker refuses and whom it ends is told to the embedding program: each cause, with what the client gets."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import ConnAckReasonCode
from own_broker import RecordingHooks

from mqtt_bytes import login
from raw_client import connect_4, frame, subscribe_5, until
from terrazzo_broker import Accept, Broker, BrokerSettings, Refuse
from terrazzo_broker.refusals import TOLD, Cause, cause_of


async def owned(request) -> Accept:
    """Owners are the first letters of client ids."""
    return Accept("someone", owner=request.client_id[0])


def told(running) -> list[tuple]:
    return [(each.cause, each.client_id, each.owner, each.reason, each.detail) for each in running.refusals]


class TestBeforeTheLogin:
    async def test_another_protocol(self, start, dial):
        running = await start()
        client = await dial(None, port=running.port)
        client.send(frame(0x10, b"\0\4MQTT\x09\2\0\0\0\0\1c"))
        await client.rest()
        (refusal,) = running.refusals
        assert (refusal.cause, refusal.reason, refusal.client_id) == (Cause.UNSUPPORTED_PROTOCOL, 0x84, "")
        assert (refusal.address, refusal.owner) == ("127.0.0.1", None)

    async def test_an_empty_client_id(self, start, dial):
        running = await start()
        client = await dial(None, version=4, port=running.port)
        client.send(connect_4("", clean=False))
        await client.rest()
        assert told(running) == [
            (Cause.CLIENT_ID_NOT_VALID, "", None, 0x85, "an empty client id needs a clean session")
        ]

    async def test_too_many_connections(self, start, dial):
        running = await start(connections=1)
        await dial("a", port=running.port)
        refused = await dial("b", port=running.port)
        assert (int(refused.connack.reason_code), refused.connack.reason_str) == (0x97, "too many connections")
        assert told(running) == [(Cause.TOO_MANY_CONNECTIONS, "b", None, 0x97, "too many connections")]

    async def test_more_connects_than_have_their_turn(self, start, dial):
        running = await start(connects_per_second=1, connect_timeout_s=0.5)
        for number in range(3):
            (await dial(None, port=running.port)).send(mqtt5.ConnectPacket(f"c{number}", clean_start=True))
        await until(lambda: any(each.cause is Cause.CONNECT_RATE for each in running.refusals))

    async def test_silence(self, start, dial):
        running = await start(connect_timeout_s=0.1)
        await dial(None, port=running.port)
        await until(lambda: [each.cause for each in running.refusals] == [Cause.LOGIN_TIMEOUT])

    async def test_too_many_half_open_ones(self, start, dial):
        running = await start(half_open_per_address=2)
        for _ in range(3):
            await dial(None, port=running.port)
        await until(lambda: [each.cause for each in running.refusals] == [Cause.HALF_OPEN])

    @pytest.mark.parametrize("version", [4, 5])
    async def test_no_connect_and_too_large_a_one(self, start, dial, version):
        running = await start(connect_bytes=64)
        first, second = [await dial(None, version=version, port=running.port) for _ in range(2)]
        first.send(b"\xc0\0")
        await first.rest()
        second.send(login("c" * 100, "u", "p", protocol=version))
        await second.rest()
        assert [(each.cause, each.reason) for each in running.refusals] == [
            (Cause.PROTOCOL_ERROR, 0x82),
            (Cause.PACKET_TOO_LARGE, 0x95),
        ]

    async def test_a_login_that_fails_by_an_error(self, start, dial):
        running = await start()

        async def broken(_request):
            raise OSError("no database")

        running.hooks.verdict = broken
        await dial("c", port=running.port)
        assert told(running) == [(Cause.LOGIN_UNAVAILABLE, "c", None, 0x88, "")]

    async def test_what_the_hooks_refuse_they_know(self, start, dial):
        running = await start()

        async def refusing(_request):
            return Refuse(ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, "no")

        running.hooks.verdict = refusing
        await dial("c", port=running.port)
        assert running.refusals == []

    async def test_an_answer_that_the_client_does_not_take(self, start, dial):
        running = await start()
        client = await dial(None, port=running.port)
        client.send(mqtt5.ConnectPacket("c", clean_start=True, max_packet_size=4))
        await client.rest()
        assert [(each.cause, each.client_id) for each in running.refusals] == [(Cause.CONNACK_TOO_LARGE, "c")]


class TestPackets:
    @pytest.mark.parametrize(
        ("packet", "cause", "reason"),
        [
            (b"\x36\x05\0\1a\0\1", Cause.MALFORMED_PACKET, 0x81),  # QoS 3
            (b"\x30\x04\0\1#\0", Cause.TOPIC_NAME_INVALID, 0x90),
            (b"\x30\x07\0\1a\x03\x23\xff\xff", Cause.TOPIC_ALIAS_INVALID, 0x94),
            (b"\x30\xff\xff\xff\x7f", Cause.PACKET_TOO_LARGE, 0x95),
            (b"\x20\0", Cause.PROTOCOL_ERROR, 0x82),
        ],
    )
    async def test_errors_of_the_client(self, start, dial, packet, cause, reason):
        running = await start()
        running.hooks.verdict = owned
        client = await dial("c", port=running.port)
        client.send(packet)
        (goodbye,) = await client.rest()
        (refusal,) = running.refusals
        assert (refusal.cause, refusal.client_id, refusal.owner) == (cause, "c", "c")
        assert int(goodbye.reason_code) in (refusal.reason, reason)
        assert goodbye.reason_str == refusal.detail != ""

    async def test_more_unacknowledged_ones_than_may_be(self, start, dial):
        running = await start(inflight_from_client=1)
        client = await dial("c", port=running.port)
        for packet_id in (1, 2):
            client.publish("t", b"x", qos=2, packet_id=packet_id)
        packets = await client.rest()
        assert int(packets[-1].reason_code) == 0x93
        assert [each.cause for each in running.refusals] == [Cause.RECEIVE_MAXIMUM]

    @pytest.mark.parametrize("qos", [0, 1, 2])
    @pytest.mark.parametrize("wants", [False, True])
    async def test_a_publish_that_is_not_allowed(self, start, dial, qos, wants):
        running = await start()
        running.hooks.grant = lambda _client, _topic: None
        client = await dial("c", port=running.port, request_problem_info=wants)
        client.publish("secret", b"x", qos=qos, **({"packet_id": 1} if qos else {}))
        if qos:
            answer = await client.receive()
            why = TOLD[Cause.PUBLISH_NOT_ALLOWED] if wants else None
            assert (int(answer.reason_code), answer.reason_str) == (0x87, why)
        await client.silence()
        assert told(running) == [(Cause.PUBLISH_NOT_ALLOWED, "c", "", 0x87, "secret")]

    async def test_a_reason_that_the_client_has_no_room_for_is_left_out(self, start, dial):
        running = await start()
        running.hooks.grant = lambda _client, _topic: None
        running.hooks.may_subscribe = lambda _client, _filter: False
        client = await dial("c", port=running.port, max_packet_size=40)
        client.publish("secret", b"x", qos=1, packet_id=1)
        assert (await client.receive()).reason_str is None
        assert (await client.subscribe(("a", 0))).reason_str is None
        assert len(running.refusals) == 2

    async def test_a_payload_that_is_no_text(self, start, dial):
        running = await start()
        client = await dial("c", port=running.port)
        client.publish("t", b"\xff", qos=1, packet_id=1, payload_format_indicator=1)
        answer = await client.receive()
        assert (int(answer.reason_code), answer.reason_str) == (0x99, TOLD[Cause.PAYLOAD_FORMAT_INVALID])
        assert told(running) == [(Cause.PAYLOAD_FORMAT_INVALID, "c", "", 0x99, "t")]

    async def test_a_full_queue(self, start, dial):
        running = await start(queued_messages=1)
        sleeper = await dial("s", port=running.port, clean_start=False, session_expiry_interval=100)
        await sleeper.subscribe(("t", 1))
        await sleeper.finish()
        await until(lambda: running.broker.client("s") is None)
        client = await dial("c", port=running.port)
        client.send(*[mqtt5.PublishPacket("t", b"x", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=n) for n in range(1, 5)])
        answers = [await client.receive() for _ in range(4)]
        assert [int(each.reason_code) for each in answers] == [0, 0x97, 0x97, 0x97]
        assert {each.reason_str for each in answers[1:]} == {TOLD[Cause.PUBLISH_QUOTA]}
        assert {each.cause for each in running.refusals} == {Cause.PUBLISH_QUOTA}
        assert sum(each.times for each in running.refusals) == 3

    async def test_what_may_not_be_retained(self, start, dial):
        running = await start(retained_messages=1)
        client = await dial("c", port=running.port)
        for packet_id, topic in enumerate(("a", "b"), 1):
            client.publish(topic, b"x", qos=1, packet_id=packet_id, retain=True)
        assert [int((await client.receive()).reason_code) for _ in range(2)] == [0x10, 0x97]
        assert told(running) == [(Cause.RETAINED_QUOTA, "c", "", 0x97, "b")]

    async def test_what_is_passed_on_and_not_retained(self, start, dial):
        """At QoS 0 no answer can say it: whoever asks why is told all the same."""
        running = await start(retained_messages=1)
        client = await dial("c", port=running.port)
        for topic in ("a", "b", "a"):
            client.publish(topic, b"x", retain=True)
        await until(lambda: told(running) == [(Cause.RETAINED_QUOTA, "c", "", 0, "b")])

    async def test_who_publishes_too_fast(self, start, dial):
        running = await start(publish_per_second=1)
        client = await dial("c", port=running.port)
        for _ in range(3):
            client.publish("t", b"x")
        await until(lambda: [each.cause for each in running.refusals] == [Cause.PUBLISH_RATE])

    async def test_filters(self, start, dial):
        running = await start(subscriptions_per_session=1)
        running.hooks.may_subscribe = lambda _client, topic_filter: topic_filter != "secret"
        client = await dial("c", port=running.port)
        client.send(subscribe_5(1, ("a/#/b", 0), ("secret", 0), ("a", 0), ("b", 0)))
        answer = await client.receive()
        assert [int(code) for code in answer.reason_codes] == [0x8F, 0x87, 0, 0x97]
        assert answer.reason_str == TOLD[Cause.TOPIC_FILTER_INVALID]  # of the first one
        assert [(each.cause, each.detail) for each in running.refusals] == [
            (Cause.TOPIC_FILTER_INVALID, "a/#/b"),
            (Cause.SUBSCRIBE_NOT_ALLOWED, "secret"),
            (Cause.SUBSCRIPTION_QUOTA, "b"),
        ]


class TestEnds:
    async def test_a_takeover(self, start, dial):
        running = await start()
        first = await dial("c", port=running.port)
        await dial("c", port=running.port)
        assert int((await first.receive()).reason_code) == 0x8E
        assert told(running) == [(Cause.TAKEN_OVER, "c", "", 0x8E, "from 127.0.0.1")]

    async def test_silence_beyond_the_keep_alive(self, start, dial):
        running = await start()
        client = await dial("c", port=running.port, version=4, keep_alive=1)
        await client.closed()
        assert told(running) == [(Cause.KEEP_ALIVE_TIMEOUT, "c", "", 0x8D, "silent for more than 1 s")]

    @pytest.mark.parametrize("text", ["", "because"])
    async def test_the_program_ends_it(self, start, dial, text):
        running = await start()
        client = await dial("c", port=running.port)
        assert running.broker.disconnect("c", 0x98, text=text)
        goodbye = await client.receive()
        assert goodbye.reason_str == "disconnected by the server: administrative_action" + (f": {text}" if text else "")
        assert told(running) == [(Cause.ENDED_BY_SERVER, "c", "", 0x98, text)]

    async def test_a_session_that_expires(self, start, dial):
        running = await start()
        running.hooks.verdict = owned
        client = await dial("c", port=running.port, session_expiry_interval=1)
        await client.subscribe(("t", 1))
        await client.finish()
        await until(lambda: running.broker.client("c") is None)
        running.broker.publish("t", b"x", qos=1)
        await until(lambda: running.refusals)
        assert told(running) == [(Cause.SESSION_EXPIRED, "c", "c", 0, "1 messages waited for it")]

    async def test_who_goes_in_order_is_not_told_of(self, start, dial):
        running = await start()
        client = await dial("c", port=running.port)
        client.send(mqtt5.DisconnectPacket())
        await client.closed()
        await running.broker.close(1.0)
        assert running.refusals == []


async def test_a_program_that_fails_to_listen_disturbs_nobody(dial):
    def broken(_refusal):
        raise ValueError("no")

    broker = Broker(BrokerSettings(sys_interval_s=0), RecordingHooks(), on_refused=broken)
    port = await broker.listen_tcp("127.0.0.1", 0)
    first = await dial("c", port=port)
    second = await dial("c", port=port)
    assert int((await first.receive()).reason_code) == 0x8E
    await second.silence()
    assert broker.stats.hook_failures == 1
    await broker.close(1.0)


def test_a_cause_for_each_code_of_an_error():
    assert cause_of(0x82) is cause_of(0x80) is Cause.PROTOCOL_ERROR
    assert cause_of(0x95) is Cause.PACKET_TOO_LARGE
