"""The socket by which commands on this machine ask."""

from __future__ import annotations

import asyncio
import json

import pytest

from terrazzo.cli.control import NotDone, ask_running
from terrazzo.errors import Conflict
from terrazzo.ports.control import SOCKET
from terrazzo.runtime.control_socket import ControlSocket


@pytest.fixture
async def control(tmp_path):
    (tmp_path / SOCKET).write_text("what an earlier process left")

    async def echo(question, say):
        say({"half": 1})
        return {"said": question["word"]}

    async def refuse(_question, _say):
        raise Conflict("not now")

    listening = ControlSocket(tmp_path, {"echo": echo, "refuse": refuse}, expected=(Conflict,))
    await listening.start()
    yield listening
    await listening.stop()


def ask(tmp_path, lines=None, **question):
    return asyncio.to_thread(ask_running, tmp_path, question, (lines if lines is not None else []).append)


async def test_it_answers_and_says_what_happens_meanwhile(control, tmp_path):
    lines = []
    assert await ask(tmp_path, lines, do="echo", word="x") == {"said": "x"}
    assert lines == [{"half": 1}]
    assert (tmp_path / SOCKET).stat().st_mode & 0o777 == 0o600


async def test_it_says_why_not(control, tmp_path, caplog):
    with pytest.raises(NotDone, match="not now"):
        await ask(tmp_path, do="refuse")
    with pytest.raises(NotDone, match="do: expected one of echo, refuse"):
        await ask(tmp_path, do="fly")
    with pytest.raises(NotDone, match="internal error: KeyError"):
        await ask(tmp_path, do="echo")
    assert "a command on this machine failed" in caplog.text


@pytest.mark.parametrize("text", [b"\n", b"[]\n", b"\xff\n", b'{"do":\n', json.dumps([[[]]]).encode() + b"\n"])
async def test_what_is_no_question_is_refused(control, tmp_path, text):
    reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET)
    writer.write(text)
    assert json.loads(await reader.readline()) == {"error": "expected a line with a JSON object"}
    writer.close()
    await writer.wait_closed()


async def test_a_question_has_a_bound(control, tmp_path):
    reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET)
    writer.write(b"x" * 100_000)
    assert await reader.read() == b""
    writer.close()


async def test_where_none_runs_nobody_answers(control, tmp_path):
    await control.stop()
    assert await ask(tmp_path, do="echo") is None
    assert not (tmp_path / SOCKET).exists()
