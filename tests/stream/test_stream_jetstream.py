"""The log and the records on a real NATS server: numbering, fencing, reading, trimming, refusals."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nats_servers import NatsServer, running_nats
from support import free_port
from terrazzo.ports.stream import (
    LogFull,
    Logged,
    LogReader,
    LogServer,
    LogUnavailable,
    LogUnusable,
    LogWentBack,
    RecordChanged,
    StaleWriter,
)
from terrazzo_adapters.jetstream import Connection, JetStreamLog, JetStreamRecords, JetStreamSettings, check_servers
from terrazzo_adapters.jetstream.connection import Refused


async def _open_log(connection: Connection) -> JetStreamLog:
    log = JetStreamLog(connection)
    await log.open()
    return log


async def _fill(log: JetStreamLog, count: int, *, body: bytes = b"frame") -> None:
    for number in range(count):
        assert await log.publish(body + b"%d" % number, message_id=f"m{number}", last=number) == number + 1


async def _take(reader: LogReader, count: int) -> list[Logged]:
    found: list[Logged] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += await reader.next(0.5)
    return found


async def _take_patiently(reader: LogReader, count: int) -> list[Logged]:
    """As ``_take`` where three servers may have to choose first who hands out the frames."""
    found: list[Logged] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += await _until_read(reader)
    return found


async def test_frames_are_numbered_and_read_in_order_from_anywhere(connection: Connection) -> None:
    log = await _open_log(connection)
    empty = await log.state()
    assert (empty.first, empty.last) == (1, 0)
    await _fill(log, 50)
    reader = log.read(0, empty.created)
    assert await _take(reader, 50) == [Logged(n + 1, b"frame%d" % n, f"m{n}") for n in range(50)]
    assert await reader.next(0.05) == []
    await log.publish(b"later", message_id="x", last=50)
    assert await _take(reader, 1) == [Logged(51, b"later", "x")]
    middle = log.read(48, empty.created)
    assert [each.sequence for each in await _take(middle, 3)] == [49, 50, 51]
    assert await log.find(50) == Logged(50, b"frame49", "m49")
    assert await log.find(52) is None
    assert (await log.state())[1:3] == (1, 51)


async def test_a_writer_that_missed_a_frame_is_refused(connection: Connection) -> None:
    log = await _open_log(connection)
    await _fill(log, 2)
    with pytest.raises(StaleWriter) as refused:
        await log.publish(b"late", message_id="late", last=1)
    assert refused.value.last == 2
    # however old the first attempt is: its number is asked for, not the window of deduplication
    with pytest.raises(StaleWriter):
        await log.publish(b"frame1", message_id="m1", last=1)
    assert connection.stats.stale == 2
    assert connection.stats.published == 2


async def test_trimming_leaves_the_newest_frame_and_the_numbers(connection: Connection) -> None:
    log = await _open_log(connection)
    created = (await log.state()).created
    await _fill(log, 5)
    await log.trim(3)
    assert (await log.state())[1:3] == (3, 5)
    await log.trim(99)
    assert (await log.state())[1:3] == (5, 5)
    assert await log.publish(b"next", message_id="n", last=5) == 6
    with pytest.raises(LogWentBack, match="begins at frame 5, and this node needs 3"):
        await log.read(2, created).next(0.1)


async def test_a_log_that_was_made_anew_or_lost_frames_is_refused(connection: Connection) -> None:
    log = await _open_log(connection)
    state = await log.state()
    await _fill(log, 3)
    with pytest.raises(LogWentBack, match=r"last frame is 3, and this node has 4 already"):
        await log.read(4, state.created).next(0.1)
    await connection.ask(f"STREAM.DELETE.{connection.settings.name.upper()}_OUT")
    anew = await _open_log(connection)
    with pytest.raises(LogWentBack, match="it was deleted or is another one"):
        await anew.read(3, state.created).next(0.1)
    with pytest.raises(StaleWriter) as refused:
        await anew.publish(b"x", message_id="x", last=3)
    assert refused.value.last == 0


async def test_a_full_log_takes_nothing_and_forgets_nothing(connection: Connection) -> None:
    log = await _open_log(connection)
    piece, count = b"x" * (1 << 20), 0  # of which the log takes seven
    while (await log.state()).size < 6 << 20:
        count = await log.publish(piece, message_id=f"{count}", last=count)
    count = await log.publish(piece, message_id="last", last=count)
    with pytest.raises(LogFull, match=r"stream\.log_gib"):
        await log.publish(piece, message_id="no more", last=count)
    state = await log.state()
    assert (state.first, state.last) == (1, count)
    await log.trim(count)
    assert await log.publish(piece, message_id="again", last=count) == count + 1


async def test_records_are_changed_by_compare_and_set(connection: Connection) -> None:
    records = JetStreamRecords(connection)
    await records.open()
    assert await records.get("leader") is None
    first = await records.put("leader", b"a", revision=0)
    with pytest.raises(RecordChanged):
        await records.put("leader", b"b", revision=0)
    second = await records.put("leader", b"b", revision=first)
    with pytest.raises(RecordChanged):
        await records.put("leader", b"c", revision=first)
    await records.put("node.x", b"1", revision=0)
    found = await records.get("leader")
    assert found is not None
    assert found == (b"b", second)
    assert await records.all() == {"leader": b"b", "node.x": b"1"}
    await records.delete("node.x")
    await records.delete("node.x")
    assert await records.all() == {"leader": b"b"}
    await records.put("node.x", b"2", revision=0)
    assert await records.all() == {"leader": b"b", "node.x": b"2"}


async def test_streams_that_are_set_up_otherwise_are_refused(connection: Connection) -> None:
    name = connection.settings.name
    await connection.ask(
        f"STREAM.CREATE.{name.upper()}_OUT", {"name": f"{name.upper()}_OUT", "subjects": [f"{name}.out.*"]}
    )
    with pytest.raises(LogUnusable, match="discard = 'old', expected 'new'"):
        await JetStreamLog(connection).open()


async def test_more_replicas_than_servers_are_refused(stream_settings: JetStreamSettings) -> None:
    connection = Connection(replace(stream_settings, replicas=3))
    await connection.open()
    with pytest.raises(LogUnusable, match=r"stream\.replicas: 3 replicas need as many servers"):
        await JetStreamLog(connection).open()
    await connection.close()


async def test_no_server_is_said(stream_settings: JetStreamSettings) -> None:
    port = free_port()
    with pytest.raises(LogUnavailable, match=f"stream.url: nats://127.0.0.1:{port}"):
        await Connection(replace(stream_settings, url=f"nats://127.0.0.1:{port}", timeout_s=0.3)).open()


async def test_servers_that_do_not_sync_or_take_too_little_are_refused(
    nats_server: NatsServer, stream_settings: JetStreamSettings, tmp_path: Path
) -> None:
    monitored = replace(stream_settings, monitor_url=nats_server.monitor_url)
    assert await check_servers(monitored) == "verified: 1 of 1 servers sync what they acknowledge"
    assert (await check_servers(stream_settings)).startswith("unverified: stream.monitor_url is not set")
    assert (await check_servers(replace(monitored, replicas=3))).startswith("unverified: stream.monitor_url names 1")
    with running_nats(tmp_path, sync='"2m"', payload="64KB") as (lazy,):
        with pytest.raises(LogUnusable, match="syncs every 120 s, not before it answers"):
            await check_servers(replace(stream_settings, monitor_url=lazy.monitor_url))
        with pytest.raises(LogUnusable, match="max_payload of the server is 65,536 bytes"):
            await Connection(replace(stream_settings, url=lazy.url)).open()
    with pytest.raises(LogUnusable, match=r"can't be read"):
        await check_servers(replace(stream_settings, monitor_url=f"http://127.0.0.1:{free_port()}"))


async def test_credentials_and_files_of_tls_that_are_refused_name_their_key(
    stream_settings: JetStreamSettings, tmp_path: Path
) -> None:
    with pytest.raises(LogUnusable, match=r"stream\.tls_ca: /nowhere: No such file"):
        await Connection(replace(stream_settings, tls_ca="/nowhere")).open()
    with running_nats(tmp_path, options='authorization { user: "u", password: "p" }') as (server,):
        asked = replace(stream_settings, url=server.url, timeout_s=10.0)
        with pytest.raises(LogUnusable, match="the credentials are refused"):
            await Connection(asked).open()
        allowed = Connection(replace(asked, username="u", password="p"))
        await allowed.open()
        await (await _open_log(allowed)).state()
        await allowed.close()


async def test_a_reader_goes_on_after_the_server_was_killed(stream_settings: JetStreamSettings, tmp_path: Path) -> None:
    with running_nats(tmp_path) as (server,):
        connection = Connection(replace(stream_settings, url=server.url, timeout_s=1.0))
        await connection.open()
        log = await _open_log(connection)
        reader = log.read(0, (await log.state()).created)
        await _fill(log, 3)
        assert len(await _take(reader, 3)) == 3
        server.kill()
        with pytest.raises(LogUnavailable):
            await log.publish(b"x", message_id="x", last=3)
        server.start()
        server.wait()
        await _until_published(log, last=3)
        found = await _until_read(reader)
        assert [each.sequence for each in found] == [4]
        assert connection.stats.connects == 2
        await connection.close()


async def test_what_was_read_before_the_connection_is_lost_is_not_left_out(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader asks for more while it hands on what it has: that can fail."""
    log = await _open_log(connection)
    reader = log.read(0, (await log.state()).created)
    await _fill(log, 60)
    tell, asked = connection.tell, 0

    async def lose_each_second(*arguments: Any, **more: Any) -> None:
        nonlocal asked
        asked += 1
        if asked % 2 == 0:
            raise LogUnavailable("no server is reached")
        await tell(*arguments, **more)

    monkeypatch.setattr(connection, "tell", lose_each_second)
    assert [each.sequence for each in await _take_patiently(reader, 60)] == list(range(1, 61))
    assert asked > 3


async def test_three_servers_go_on_without_the_leader_and_lose_nothing(
    stream_settings: JetStreamSettings, tmp_path: Path
) -> None:
    async with AsyncExitStack() as closing:
        servers = closing.enter_context(running_nats(tmp_path, 3))
        urls = ",".join(server.url for server in servers)
        connection = Connection(replace(stream_settings, url=urls, replicas=3, timeout_s=1.0))
        await connection.open()
        closing.push_async_callback(connection.close)
        log = JetStreamLog(connection)
        await _until_open(log)
        created = (await log.state()).created
        reader = log.read(0, created)
        await _fill(log, 20)
        assert len(await _take_patiently(reader, 20)) == 20
        info = await connection.ask(f"STREAM.INFO.{connection.settings.name.upper()}_OUT")
        (leader,) = (server for server in servers if server.name == info["cluster"]["leader"])
        seen = (await log.state()).servers
        assert [(each.name, each.leads) for each in seen] == [(each.name, each is leader) for each in servers]
        leader.kill()
        await _until_published(log, last=20)
        await _until_away(log, leader.name)
        assert sum(each.leads for each in await _servers(log)) == 1
        assert [each.sequence for each in await _until_read(reader)] == [21]
        again = log.read(0, created)
        assert [each.sequence for each in await _take_patiently(again, 21)] == list(range(1, 22))
        with pytest.raises(StaleWriter):
            await log.publish(b"old", message_id="old", last=20)


async def test_of_many_writers_at_once_one_wins_and_no_other_takes_the_servers_for_unusable(
    stream_settings: JetStreamSettings, tmp_path: Path
) -> None:
    """While a writing is on its way to most of three servers, they refuse others with a code of its own."""
    async with AsyncExitStack() as closing:
        servers = closing.enter_context(running_nats(tmp_path, 3))
        connection = Connection(replace(stream_settings, url=servers[0].url, replicas=3))
        await connection.open()
        closing.push_async_callback(connection.close)
        log, records = JetStreamLog(connection), JetStreamRecords(connection)
        await _until_open(log)
        await _until_open(records)

        async def put(value: int) -> str:
            try:
                await records.put("key", b"%d" % value, revision=0)
            except (RecordChanged, LogUnavailable) as error:
                return type(error).__name__
            return "won"

        async def publish(value: int) -> str:
            try:
                await log.publish(b"%d" % value, message_id=f"{value}", last=0)
            except (StaleWriter, LogUnavailable) as error:
                return type(error).__name__
            return "won"

        for write in (put, publish):
            found = await asyncio.gather(*map(write, range(20)))
            assert found.count("won") == 1
        assert "LogUnavailable" in found, "none came while another was under way: this shows nothing"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no suitable peers for placement, peer offline", LogUnavailable),
        ("no suitable peers for placement", LogUnusable),
    ],
)
async def test_a_server_that_is_away_for_now_is_no_fault_of_the_configuration(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, text: str, expected: type[Exception]
) -> None:
    """What three servers that have just begun answer to who asks too early."""
    ask = connection.ask

    async def refuse(subject: str, *arguments: Any) -> dict[str, Any]:
        if subject.startswith("STREAM.CREATE"):
            raise Refused(subject, {"code": 400, "err_code": 10_005, "description": text})
        return await ask(subject, *arguments)

    monkeypatch.setattr(connection, "ask", refuse)
    with pytest.raises(expected, match=r"stream\.replicas: "):
        await JetStreamLog(connection).open()


async def _until_open(log: JetStreamLog | JetStreamRecords) -> None:
    """Three servers need some seconds until they have chosen who decides."""
    async with asyncio.timeout(30):
        while True:
            try:
                await log.open()
            except LogUnavailable:
                await asyncio.sleep(0.1)
            else:
                return


async def _servers(log: JetStreamLog) -> tuple[LogServer, ...]:
    """The servers of a log that answers."""
    while True:
        try:
            return (await log.state()).servers
        except LogUnavailable:
            await asyncio.sleep(0.1)


async def _until_away(log: JetStreamLog, name: str) -> None:
    """Waits until the server that leads says that another one isn't heard."""
    async with asyncio.timeout(60):
        while True:
            if any(each.name == name and not each.is_current for each in await _servers(log)):
                return
            await asyncio.sleep(0.1)


async def _until_published(log: JetStreamLog, *, last: int) -> None:
    """Tries until the frame is there; an attempt without an answer may have brought it there."""
    async with asyncio.timeout(30):
        while True:
            try:
                await log.publish(b"x", message_id="x", last=last)
            except LogUnavailable:
                await asyncio.sleep(0.05)
            except StaleWriter:
                found = await log.find(last + 1)
                assert found == (last + 1, b"x", "x")
                return
            else:
                return


async def _until_read(reader: LogReader) -> list[Logged]:
    async with asyncio.timeout(30):
        while True:
            try:
                if found := await reader.next(0.5):
                    return found
            except LogUnavailable:
                await asyncio.sleep(0.05)
