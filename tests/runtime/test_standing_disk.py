"""A disk or a pipe that takes nothing: the event loop goes on, what waits is bounded, and nothing is forgotten."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from terrazzo import line_file, work_process
from terrazzo.files.folder import FileFolder
from terrazzo.line_file import LineFile
from terrazzo.mapping import compiler, trials
from terrazzo.mapping.catalogue import MappingLimits
from terrazzo.mapping.dry_run import Sample
from terrazzo.mapping.trial_process import TrialRequest
from terrazzo_broker.log_text import LogThread
from waiting import until

MOST_S = 20.0  # until a thread has done its work


class Gate:
    """What is called through it waits while it is shut. It may not be waited for by the thread that shut it."""

    def __init__(self) -> None:
        self.calls = 0
        self._open = threading.Event()
        self._open.set()
        self._owner = threading.get_ident()

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def guard(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if not self._open.is_set() and threading.get_ident() == self._owner:
                raise AssertionError("the event loop would wait for the disk")
            assert self._open.wait(MOST_S)
            return work(*args, **kwargs)

        return guarded


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


# Lines


async def test_lines_are_put_down_while_the_disk_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    file = LineFile(tmp_path / "lines", "nothing would happen")
    file.rewrite([])
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", gate.guard(os.write))
        gate.shut()
        for number in range(1_000):
            file.append(str(number), list)
        await until(lambda: gate.calls)
        gate.open()
        await until(lambda: len(file.load()) == 1_000)
    file.close()
    assert file.load() == [str(number) for number in range(1_000)]


async def test_what_waits_is_written_at_the_end(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "lines", "nothing would happen")
    file.rewrite([])
    for number in range(100):
        file.append(str(number), list)
    file.close()
    assert file.load() == [str(number) for number in range(100)]


async def test_lines_that_come_soon_after_one_another_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = LineFile(tmp_path / "lines", "nothing would happen", gather_s=0.05)
    file.rewrite([])
    writes = []
    monkeypatch.setattr(os, "write", lambda to, data, write=os.write: (writes.append(data), write(to, data))[1])
    for number in range(100):
        file.append(str(number), list)
        await asyncio.sleep(0)
    await until(lambda: len(file.load()) == 100)
    assert len(writes) < 10
    file.append("after a rest", list)
    await until(lambda: file.load()[-1] == "after a rest")
    file.append("at the end", list)
    file.close()
    assert file.load() == [*map(str, range(100)), "after a rest", "at the end"]


async def test_when_too_much_waits_the_file_is_made_anew_and_has_all_that_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    monkeypatch.setattr(line_file, "_MOST_WAITING", 50)
    known: dict[int, None] = {}
    file = LineFile(tmp_path / "lines", "nothing would happen")
    file.rewrite([])
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", gate.guard(os.write))
        gate.shut()
        for number in range(200):
            known[number] = None
            file.append(str(number), lambda: list(map(str, known)))
        assert file.overflows >= 100
        gate.open()
        await until(lambda: len(file.load()) == 200)
    file.close()
    assert file.load() == [str(number) for number in range(200)]


async def test_a_file_is_kept_short_while_lines_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_file, "_COMPACT_LINES", 10)
    file = LineFile(tmp_path / "lines", "nothing would happen")
    file.rewrite([])
    for number in range(500):
        file.append(str(number), lambda number=number: [str(number)])
        if number % 5 == 0:
            await until(lambda: file._under_way is None)
            assert len(file.load()) <= 20
    file.close()


async def test_a_disk_that_takes_nothing_does_not_keep_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(line_file, "_CLOSE_S", 0.05)
    file = LineFile(tmp_path / "lines", "something would be forgotten")
    file.rewrite([])
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", gate.guard(os.write))
        gate.shut()
        file.append("line", list)
        file.close()
        gate.open()
        await until(lambda: file.load() == ["line"])
    assert "something would be forgotten" in caplog.text


# The log


class Stream(io.StringIO):
    """A stream that may take nothing."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.write = gate.guard(super().write)  # type: ignore[method-assign]


def test_who_logs_does_not_wait_and_what_is_too_much_is_counted_and_told(gate: Gate) -> None:
    stream = Stream(gate)
    handler = LogThread(stream, most_waiting=10)
    logger = logging.Logger("terrazzo.test")
    logger.addHandler(handler)
    gate.shut()
    for number in range(100):
        logger.warning("line %d", number)
    assert handler.dropped >= 80
    gate.open()
    handler.flush()
    logger.warning("the last")
    handler.flush()
    lines = stream.getvalue().splitlines()
    written = [line for line in lines if line.startswith("line ")]
    assert written == [f"line {number}" for number in range(len(written))]
    assert len(written) + handler.dropped == 100
    assert f"{handler.dropped} more lines were not written: too many waited" in lines
    assert lines[-1] == "the last"


def test_a_record_that_can_not_be_formatted_and_a_stream_that_fails_end_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = io.StringIO()
    handler = LogThread(stream)
    logger = logging.Logger("terrazzo.test")
    logger.addHandler(handler)
    logger.warning("%d", "no number")
    logger.warning("one")
    handler.flush()
    assert stream.getvalue() == "one\n"
    stream.close()
    logger.warning("two")
    handler.flush()
    assert handler.dropped == 1
    assert "no number" in capsys.readouterr().err


# Uploaded files


async def test_files_are_removed_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    folder = FileFolder(tmp_path, most_bytes=1_000)

    async def pieces() -> Any:
        yield b"content"

    content = await folder.write(pieces(), lambda _head: None)
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", gate.guard(os.unlink))
        gate.shut()
        removing = asyncio.create_task(folder.remove(content.uid))
        await until(lambda: gate.calls)
        assert not removing.done()
        gate.open()
        await removing
    assert not os.listdir(tmp_path)


async def test_an_upload_that_ends_early_leaves_nothing_and_holds_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    folder = FileFolder(tmp_path, most_bytes=1_000)

    async def pieces() -> Any:
        yield b"content"
        gate.shut()
        raise ConnectionResetError

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", gate.guard(os.unlink))
        writing = asyncio.create_task(folder.write(pieces(), lambda _head: None))
        await until(lambda: gate.calls)
        gate.open()
        with pytest.raises(Exception, match="the platform's disk fails"):
            await writing
    assert not os.listdir(tmp_path)


# Processes


async def test_processes_are_begun_beside_the_loop(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    for module in (work_process, trials):
        monkeypatch.setattr(module, "Popen", gate.guard(subprocess.Popen))
    monkeypatch.setattr(trials, "_SMALL_SCRIPT", 0)
    one = compiler.PlanCompiler()
    request = TrialRequest([["V", "", "", "STA", "t1.a", ""]], ["t1"], [Sample("t1", {"a": 1}, 1)], MappingLimits())
    gate.shut()
    compiling = asyncio.create_task(one.compile("n = 3"))
    trying = asyncio.create_task(trials.MappingTrials().run(1, request))
    await until(lambda: gate.calls == 2)
    gate.open()
    assert (await compiling).co_names == ("n",)
    assert len((await trying).records) == 1
    await one.close()
