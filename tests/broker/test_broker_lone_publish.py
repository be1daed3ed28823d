"""A publish that is alone in its read is handled as one among others: the same packets, counters and states."""

from __future__ import annotations

from typing import Any

import pytest

from raw_client import frame, publish_4
from terrazzo_broker.handlers import lone_publish
from waiting import until

_PAYLOADS = [b"", b"x", b"\0", b"\x0b\1", bytes(100), b"y" * 118, b"y" * 130, b"y" * 300]


async def _exchange(start: Any, dial: Any, monkeypatch: Any, *, qos: int, granted: int, is_lone: bool) -> Any:
    """What a subscriber of 3.1.1 and one of 5.0 get, what the publisher is answered, and the counters behind it."""
    taken = []
    if is_lone:
        handle = lone_publish.handle_lone
        monkeypatch.setattr(
            "terrazzo_broker.packet_loop.handle_lone", lambda *given: taken.append(found := handle(*given)) or found
        )
    else:
        monkeypatch.setattr("terrazzo_broker.packet_loop.handle_lone", lambda *given: False)
    running = await start()
    found: list[Any] = []
    for version, topic in ((4, "t/4"), (5, "t/5")):
        name = f"{version}"
        receiver = await dial(f"r{name}", version=version, port=running.port)
        await receiver.subscribe((topic, granted))
        sender = await dial(f"s{name}", version=version, port=running.port)
        for number, payload in enumerate(_PAYLOADS * 2, 1):
            if version == 4:
                sender.send(publish_4(topic, payload, qos=qos, packet_id=number))
            else:
                sender.publish(topic, payload, qos=qos, packet_id=number if qos else None)
            found.append(await receiver.receive())
            if qos:
                found.append(await sender.receive())
        session = running.broker.sessions[f"r{name}"]
        found.append((list(session.inflight.items()), session.quota, session.last_id))
        client = running.broker.core.client(f"s{name}")
        found.append((client.messages_in, running.broker.core.client(f"r{name}").messages_out))
    stats = running.broker.stats
    found.append((stats.messages_in_qos0, stats.messages_in_qos1, stats.messages_out, stats.bytes_in, stats.bytes_out))
    return found, taken


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("qos", [0, 1])
async def test_the_same_as_among_others(start: Any, dial: Any, monkeypatch: Any, qos: int, granted: int) -> None:
    lone, taken = await _exchange(start, dial, monkeypatch, qos=qos, granted=granted, is_lone=True)
    others, _ = await _exchange(start, dial, monkeypatch, qos=qos, granted=granted, is_lone=False)
    assert repr(lone) == repr(others)
    assert (True in taken) == (not qos or granted > 0)


async def test_it_waits_where_the_window_is_full(start: Any, dial: Any) -> None:
    running = await start(inflight_to_client=2)
    receiver, sender = await dial("r", version=4, port=running.port), await dial("s", version=4, port=running.port)
    await receiver.subscribe(("t", 1))
    got = []
    for number in range(1, 5):
        sender.send(publish_4("t", b"%d" % number, qos=1, packet_id=number))
        assert await sender.receive() == (0x40, number.to_bytes(2, "big"))
    for _ in range(2):
        got.append((await receiver.receive())[1])
    await receiver.silence()
    receiver.send(*(frame(0x40, body[3:5]) for body in got))
    got += [(await receiver.receive())[1] for _ in range(2)]
    assert [body[5:] for body in got] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    "packet", [b"\x32\x04\0\1t\0", b"\x32\x05\0\1t\0\0", b"\x32\x05\0\x09t\0\1", frame(0x32, b"\0\1t\0\0", b"x")]
)
async def test_what_is_malformed_ends_the_connection(start: Any, dial: Any, packet: bytes) -> None:
    running = await start()
    receiver, sender = await dial("r", version=4, port=running.port), await dial("s", version=4, port=running.port)
    await receiver.subscribe(("t", 1))
    sender.send(publish_4("t", b"1", qos=1, packet_id=1))
    await sender.receive()
    await receiver.receive()
    sender.send(packet)
    await sender.closed()
    await receiver.silence()


async def test_a_new_subscriber_gets_the_next_one(start: Any, dial: Any) -> None:
    running = await start()
    first, sender = await dial("r", version=4, port=running.port), await dial("s", version=4, port=running.port)
    await first.subscribe(("t", 1))
    for number in (1, 2):
        sender.send(publish_4("t", b"x", qos=1, packet_id=number))
        await sender.receive()
        await first.receive()
    second = await dial("q", version=4, port=running.port)
    await second.subscribe(("t", 1))
    sender.send(publish_4("t", b"y", qos=1, packet_id=3))
    assert (await second.receive())[1].endswith(b"y")
    assert (await first.receive())[1].endswith(b"y")
    await until(lambda: running.broker.stats.messages_out == 4)
