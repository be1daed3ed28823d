"""A node that may have been declared dead sends nothing more of its sessions, and publishes no wills by itself."""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from test_stream_peers import publish
from test_stream_sessions import LASTS, dial, heard, node, will

from raw_client import until

__all__ = ["dial", "node"]


async def test_sessions_are_fed_while_no_other_node_can_have_them(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(a, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 1))
    await b.knows("x-1", "d/#")
    telling = await dial(b, "x-2")
    a.is_held = False
    assert await publish(telling, "d/1", b"one") == 0
    await until(lambda: a.log.view.stats.messages == 1)
    await hearing.silence()
    a.is_held = True
    assert await heard(hearing, 1) == [b"one"]


async def test_what_was_read_of_the_log_is_not_sent_when_the_lease_has_run_out_meanwhile(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(a, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 1))
    await b.knows("x-1", "d/#")
    feeder = a.sessions.storage.feeder
    read = feeder._read

    async def read_slowly(sequence: int) -> Any:
        found = await read(sequence)
        a.is_held = False
        return found

    feeder._read = read_slowly
    assert await publish(await dial(b, "x-2"), "d/1", b"one") == 0
    await until(lambda: not a.is_held)
    await hearing.silence()
    again = await dial(b, "x-1", **LASTS)
    assert await heard(again, 1) == [b"one"]


@pytest.mark.parametrize("delay_s", [0, 1])
async def test_a_will_goes_out_once_where_others_may_have_claimed_it(node: Any, dial: Any, delay_s: int) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(b, "x-9", **LASTS)
    await hearing.subscribe(("d/will", 1))
    await a.knows("x-9", "d/will")
    dying = await dial(a, "x-1", will=will(b"cut", delay_s), **LASTS)
    await until(lambda: "x-1" in b.log.wills)
    a.is_held = False
    found = await a.records.get("front.a")
    await a.records.put("front.a", found.value.replace(b'"is_free":false', b'"is_free":true'), revision=found.revision)
    await b.log.look()
    assert await heard(hearing, 1) == [b"cut"]
    await until(lambda: "x-1" not in b.log.wills)
    await dying.finish()
    await until(lambda: a.broker.client("x-1") is None)
    await hearing.silence()
    assert a.broker.stats.wills_sent + b.broker.stats.wills_sent == 1


async def test_a_will_goes_out_where_the_lease_had_run_out_and_nobody_took_over(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(b, "x-9", **LASTS)
    await hearing.subscribe(("d/will", 1))
    await a.knows("x-9", "d/will")
    dying = await dial(a, "x-1", will=will(b"cut"), **LASTS)
    await until(lambda: "x-1" in b.log.wills)
    a.is_held = False
    await dying.finish()
    assert await heard(hearing, 1) == [b"cut"]
    await hearing.silence()
    assert a.log.stats.wills + b.log.stats.wills == 1
    await until(lambda: not a.log.wills and not b.log.wills)
    kept = await dial(a, "x-2", will=will(b"once more"))
    a.is_held = True
    kept.send(mqtt5.DisconnectPacket())
    await kept.finish()
    await until(lambda: not a.log.wills and not b.log.wills)
    await hearing.silence()


async def test_a_will_that_takes_long_to_store_is_published_once_and_followed_by_the_next(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(b, "x-9", **LASTS)
    await hearing.subscribe(("d/will", 1))
    await a.knows("x-9", "d/will")
    dying = await dial(a, "x-1", will=will(b"first"), **LASTS)
    a.holds = []
    await dying.finish()
    assert await heard(hearing, 1) == [b"first"]
    await until(lambda: a.holds, "it is being stored")
    for at in (a, b):
        await until(lambda at=at: "x-1" in at.log.wills and at.log.wills["x-1"][1].due_us, "the log has it")
        assert at.log.wills["x-1"][1].is_claimed
        assert at.log._deadlines.due("wx-1") is None, "nobody else publishes it while its node lives"
    await dial(a, "x-1", will=will(b"second"), **LASTS)
    for batch in a.holds:
        batch.settle()
    await until(lambda: "x-1" in b.log.wills and not b.log.wills["x-1"][1].due_us, "the next one is kept")
    await hearing.silence()
    await a.kill()
    await b.log.look()
    assert await heard(hearing, 1) == [b"second"]
    await hearing.silence()
