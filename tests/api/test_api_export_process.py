"""Rows of exports are made in a process where they are many: others have the interpreter meanwhile."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import sys
import termios
from collections.abc import AsyncIterator
from subprocess import Popen
from typing import Any, TypeVar

import msgspec
import psutil
import pytest
from api_rig import Rig

from terrazzo.api.operations.history import export
from terrazzo.api.operations.history.export_process import COMMAND, EncodingFailed, answer_to, data_of, request_of
from terrazzo.api.operations.history.export_rows import FileForm, encode_records
from terrazzo.ports.store import Record
from terrazzo.sparse_log import SparseLog
from terrazzo.work_process import WorkProcess
from waiting import until

START = 1_770_000_000_000_000
FORMATS = ("csv", "jsonl", "msgpack")
BODY, OTHER = msgspec.msgpack.encode({"a": 1}), msgspec.msgpack.encode({"b": 1})


@pytest.fixture
async def process() -> AsyncIterator[WorkProcess]:
    made = WorkProcess(COMMAND, name="export rows")
    yield made
    await made.close()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["mosaic", "grid"])
async def test_the_process_makes_the_same_bytes(process: WorkProcess, kind: Any, format: Any) -> None:
    form = FileForm(kind, format, ("topic", "a", "s", "n"), ("a", "s", "n") if kind == "grid" else ())
    encode = msgspec.msgpack.encode if kind == "mosaic" else msgspec.json.encode
    bodies = [encode({"a": n, "s": "=1+1", "n": None}) for n in range(1_000)]
    records = [Record("g/t1/r", START + n, body) for n, body in enumerate(bodies)]
    assert await process.ask(request_of(form, records), data_of) == encode_records(form, records)


async def test_what_a_record_does_wrong_is_told_and_the_process_goes_on(process: WorkProcess) -> None:
    form = FileForm("mosaic", "csv", ("a",), ())
    with pytest.raises(EncodingFailed, match="UnforeseenName: b"):
        await process.ask(request_of(form, [Record("m/1", START, OTHER)]), data_of)
    assert await process.ask(request_of(form, [Record("m/1", START, BODY)]), data_of)


@pytest.mark.parametrize("format", FORMATS)
async def test_a_long_export_is_made_there(rig: Rig, process: WorkProcess, format: str) -> None:
    await with_records(rig)
    use(rig, None)
    expected = await fetch(rig, format)
    use(rig, process)
    before = cpu_of_children()
    assert await fetch(rig, format) == expected
    await process.close()
    assert cpu_of_children() > before, "a process has ended"


async def test_a_short_export_starts_nothing(rig: Rig) -> None:
    nothing = use(rig, WorkProcess(("/nowhere",), name="none"))
    await rig.add_terminal("t1")
    await rig.services.store.append([Record("g/t1/r", START, b'{"a": 1}')])
    assert b"1" in await fetch(rig, "csv")
    assert nothing._process is None
    await nothing.close()


@pytest.mark.parametrize("command", [("/nowhere",), (sys.executable, "-c", "")])
async def test_without_a_process_the_file_is_the_same(
    rig: Rig, command: tuple[str, ...], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_sparse_log", SparseLog(logging.getLogger("exports")))
    await with_records(rig)
    use(rig, None)
    expected = await fetch(rig, "csv")
    broken = use(rig, WorkProcess(command, name="none"))
    assert await fetch(rig, "csv") == expected
    assert "beside the event loop" in caplog.text
    await broken.close()


def _unread(process: Popen[bytes]) -> int:
    """Bytes of its input that it has not read."""
    assert process.stdin is not None
    return int.from_bytes(fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, bytes(4)), sys.byteorder)


async def test_one_that_was_ended_is_started_anew(process: WorkProcess) -> None:
    form, records = FileForm("mosaic", "jsonl", (), ()), [Record("m/1", START, BODY)]
    await process.ask(request_of(form, records), data_of)
    running = process._process
    assert running is not None
    running.kill()
    running.wait()
    assert await process.ask(request_of(form, records), data_of), "nothing of this request was lost"
    running = process._process
    assert running is not None
    os.kill(running.pid, signal.SIGSTOP)
    await until(lambda: psutil.Process(running.pid).status() == psutil.STATUS_STOPPED)
    asking = asyncio.create_task(process.ask(request_of(form, records), data_of))
    await until(lambda: _unread(running) > 0)
    os.kill(running.pid, signal.SIGKILL)
    with pytest.raises((OSError, EOFError)):
        await asking
    assert await process.ask(request_of(form, records), data_of)


async def test_it_ends_when_it_is_idle() -> None:
    process = WorkProcess(COMMAND, name="export rows", idle_s=0.2)
    try:
        form, records = FileForm("mosaic", "jsonl", (), ()), [Record("m/1", START, BODY)]
        await process.ask(request_of(form, records), data_of)
        running = process._process
        assert running is not None
        async with asyncio.timeout(30):
            while running.returncode is None:  # noqa: ASYNC110 - another thread sets it
                await asyncio.sleep(0.01)
        assert running.returncode == 0
        assert await process.ask(request_of(form, records), data_of), "and is started again"
    finally:
        await process.close()


async def test_nothing_is_asked_of_one_that_is_closed(process: WorkProcess) -> None:
    await process.close()
    with pytest.raises(EOFError):
        await process.ask(b"", bytes)
    await process.close()


async def test_who_has_gone_leaves_the_process_to_others(process: WorkProcess) -> None:
    form = FileForm("mosaic", "jsonl", (), ())
    many = [Record("m/1", START + n, BODY) for n in range(20_000)]
    gone = asyncio.create_task(process.ask(request_of(form, many), data_of))
    await asyncio.sleep(0)
    gone.cancel()
    assert await process.ask(request_of(form, many[:1]), data_of) == encode_records(form, many[:1])
    assert gone.cancelled()


def test_an_answer_says_what_went_wrong() -> None:
    assert msgspec.msgpack.decode(answer_to(b"\xc1"))[0] == b""
    with pytest.raises(EncodingFailed):
        data_of(answer_to(b"\xc1"))


P = TypeVar("P", bound=WorkProcess | None)


def use(rig: Rig, process: P) -> P:
    msgspec.structs.force_setattr(rig.services, "export_process", process)
    return process


async def with_records(rig: Rig) -> None:
    await rig.add_terminal("t1")
    body = b'{"s": "%s", "n": 1}' % (b"x" * 1_000)
    assert len(body) * 200 > 2 * export._SHORT_BYTES
    await rig.services.store.append([Record("g/t1/r", START + n, body) for n in range(200)])


async def fetch(rig: Rig, format: str) -> bytes:
    headers = {"Authorization": f"Bearer {rig.tokens['admin']}"}
    async with rig.http.get("/export/grid/t1", headers=headers, params={"format": format}) as response:
        assert response.status == 200
        return await response.read()


def cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system
