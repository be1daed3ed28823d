"""A Unix socket: its file, and who may be in its way."""

from __future__ import annotations

import asyncio
import socket
import stat
import subprocess

import pytest
from listener_stand import ACCEPTED_4, Peer, publish, subscribe

from support import require_program


@pytest.fixture
def path(tmp_path_factory):
    """Short enough for a Unix socket's address."""
    return tmp_path_factory.mktemp("u") / "broker.sock"


async def dial(path) -> Peer:
    """A stream to a Unix socket."""
    return Peer(*await asyncio.open_unix_connection(str(path)))


async def test_a_client(start, path):
    broker = start()
    await broker.listen_unix(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    peer = await dial(path)
    assert await peer.login("c") == ACCEPTED_4
    (request,) = broker.hooks.requests
    assert (request.listener, request.address) == ("unix", "")
    assert broker.is_listening
    await peer.close()


async def test_mosquitto_pub(start, path):
    broker = start()
    await broker.listen_unix(path)
    peer = await dial(path)
    await peer.login("s")
    peer.send(subscribe("t"))
    await peer.receive()
    command = [require_program("mosquitto_pub"), "--unix", str(path), "-t", "t", "-m", "hi", "-q", "2"]
    result = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=20)
    assert (result.returncode, result.stderr) == (0, b"")
    assert await peer.receive() == publish("t", b"hi")
    await peer.close()


async def test_the_file_goes_with_the_broker(start, path):
    broker = start()
    await broker.listen_unix(path)
    await broker.close(1.0)
    assert not path.exists()


async def test_a_successors_file_stays(start, path):
    broker = start()
    await broker.listen_unix(path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as successor:
        successor.bind(str(path))
        await broker.close(1.0)
        assert path.exists()


async def test_a_stale_file_is_replaced(start, path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    broker = start()
    await broker.listen_unix(path)
    peer = await dial(path)
    assert await peer.login("c") == ACCEPTED_4
    await peer.close()


async def test_somebody_listens(start, path):
    first, second = start(), start()
    await first.listen_unix(path)
    with pytest.raises(OSError, match=rf"somebody listens on this socket: '{path}'"):
        await second.listen_unix(path)
    peer = await dial(path)
    assert await peer.login("c") == ACCEPTED_4
    await peer.close()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
async def test_something_else_is_there(start, path, kind):
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(FileExistsError, match="not a socket"):
        await start().listen_unix(path)
    assert path.exists()


async def test_no_such_folder(start, path):
    with pytest.raises(FileNotFoundError):
        await start().listen_unix(path.parent / "missing" / "broker.sock")


async def test_a_path_that_is_too_long(start, tmp_path):
    with pytest.raises(OSError, match="too long"):
        await start().listen_unix(tmp_path / ("x" * 120))
