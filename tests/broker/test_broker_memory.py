"""What the broker counts of its clients' memory, by owner: what is on its way, and what has not all arrived."""

from __future__ import annotations

from typing import Any

from own_broker import RecordingHooks

from mqtt_bytes import field, frame
from raw_client import until
from terrazzo_broker import Accept, ConnectRequest, PublishGrant
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.owner_memory import Round
from terrazzo_broker.scheduling.turns import finish


async def owner_of(request: ConnectRequest) -> Accept:
    """The owner is what stands before the first dash of the client id."""
    return Accept("someone", owner=request.client_id.partition("-")[0])


async def test_messages_that_are_not_acknowledged_count_for_their_owner(start: Any, dial: Any) -> None:
    running = await start(RecordingHooks(verdict=owner_of))
    receivers = [await dial(f"a-{number}", port=running.port) for number in range(3)]
    for receiver in receivers:
        await receiver.subscribe(("t", 1))
    memory = running.broker.memory
    for number in range(20):
        running.broker.publish("t", b"%1000d" % number, qos=1, owner="a")
    await until(lambda: memory.inflight()["a"].items == 60)
    assert 20 * 1_000 < memory.inflight()["a"].bytes < 20 * 1_200, "three receivers share the bytes"
    assert memory.queued()["a"].bytes == 0
    for receiver in receivers:
        packets = [await receiver.receive() for _ in range(20)]
        receiver.send(*(frame(0x40, packet.packet_id.to_bytes(2, "big")) for packet in packets))
    await until(lambda: not memory.inflight())


async def test_packets_that_have_not_all_arrived_count_for_their_owner(start: Any, dial: Any) -> None:
    running = await start(RecordingHooks(verdict=owner_of))
    client = await dial("a-1", port=running.port)
    whole = frame(0x30, field("t"), b"\0", bytes(50_000))
    client.send(whole[:40_000])
    memory = running.broker.memory
    await until(lambda: memory.partial().get("a", (0, 0)) == (40_000, 1))
    client.send(whole[40_000:])
    await until(lambda: not memory.partial())


async def test_messages_of_a_shared_subscription_are_delivered_in_steps(start: Any, dial: Any) -> None:
    running = await start(inflight_to_client=1_000)
    members = [await dial(f"m{number}", port=running.port) for number in range(2)]
    for member in members:
        await member.subscribe(("$share/g/t", 1))
    router = running.broker.core.router
    route = finish(router.route(PublishGrant("t"), b"t", None, ""))
    messages = [ApplicationMessage(b"t", str(number).encode(), 1) for number in range(1_000)]
    assert sum(1 for _ in router.delivering(route, messages, 0, None)) >= 1_000
    got = [[int((await member.receive()).payload) for _ in range(500)] for member in members]
    assert sorted(got) == [[*range(0, 1_000, 2)], [*range(1, 1_000, 2)]]


def test_a_round_goes_on_where_it_was() -> None:
    begun = 0

    def begin() -> Any:
        nonlocal begun
        begun += 1
        yield from ((number % 2, 10, 1) for number in range(12_000))

    going_round = Round(begin)
    found = [going_round.step() for _ in range(6)]
    assert found[:4] == [{}] * 4
    assert found[4] == found[5] == {0: (60_000, 6_000), 1: (60_000, 6_000)}
    assert begun == 2
