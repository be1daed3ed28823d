"""The listener on a Unix socket, for programs on the same machine that may open its file."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from ..core import BrokerCore
from .accepted import new_connection
from .acceptor import BACKLOG
from .listener import OpenListener, ServerListener

MODE = 0o660


async def listen_unix(core: BrokerCore, path: str | Path) -> OpenListener:
    """A listener on the socket file ``path``, open to its owner and group.

    Raises:
        OSError: something else is there, somebody listens on it, or the folder can't be written to.
    """
    path = Path(path)
    _remove_stale(path)
    listening = _bind(path)
    admission = core.admission.listener("unix")
    server = await asyncio.get_running_loop().create_unix_server(
        lambda: new_connection(core, admission), sock=listening, backlog=BACKLOG
    )
    return UnixListener(server, path)


def _remove_stale(path: Path) -> None:
    """Removes a socket file that a dead process has left, and nothing else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "not a socket, and in the way of one", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except BlockingIOError:  # somebody listens, and is behind with accepting
            pass
    raise OSError(errno.EADDRINUSE, "somebody listens on this socket", str(path))


def _bind(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(MODE)  # before anybody can connect: nobody listens yet
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise OSError(error.errno or errno.EINVAL, error.strerror or str(error), str(path)) from error
    return listening


class UnixListener(ServerListener):
    """A listener that removes its socket file when it closes, unless another process has replaced the file."""

    def __init__(self, server: asyncio.Server, path: Path) -> None:
        super().__init__(server)
        self._path = path
        self._inode = path.stat().st_ino

    async def close(self) -> None:
        """Stops accepting, and removes the file."""
        await super().close()
        with suppress(FileNotFoundError):
            if os.stat(self._path).st_ino == self._inode:
                self._path.unlink()
