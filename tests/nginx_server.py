"""nginx as a process of its own, in front of the ports that a test names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection

import pytest

from running import ServerProcess
from support import require_program

_STREAM = Path("/usr/lib/nginx/modules/ngx_stream_module.so")

_CONFIG = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
load_module {module};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {http}
}}
stream {{
    {stream}
}}
"""


@contextmanager
def nginx(
    folder: Path, *, http: str = "", stream: str = "", ports: tuple[int, ...], connections: int = 512
) -> Iterator[None]:
    """Runs nginx with these blocks inside ``http`` and ``stream``, from when it listens on all of ``ports``.

    ``connections``: how many it has at a time, those to what is behind among them.
    """
    program = require_program("nginx")
    if not _STREAM.exists():
        pytest.fail("nginx's stream module is not installed (libnginx-mod-stream)")
    folder.mkdir(parents=True)
    config = folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, module=_STREAM, http=http, stream=stream, connections=connections))
    command = [program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]
    with ServerProcess(command, log=folder / "output.log") as process:
        process.wait_ready(lambda: all(is_open(port) for port in ports))
        yield


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
