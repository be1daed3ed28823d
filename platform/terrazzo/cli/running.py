"""Whether a platform runs with this configuration, and what it answers on its HTTP port."""

from __future__ import annotations

import socket
import ssl
import struct
import urllib.request
from pathlib import Path

from terrazzo.config.sections import Config
from terrazzo.ports.control import at_folder

PROBE_TIMEOUT_S = 3.0
_CREDENTIALS = struct.Struct("3i")  # process, user, group [unix(7)]
_MOST_BYTES = 16 * 2**20  # of an answer


def is_running(config: Config) -> bool:
    """Whether a Terrazzo answers on the HTTP port, or on the control socket of the data folder."""
    return answers(config) or process_of(config.data_dir) is not None


def answers(config: Config) -> bool:
    """Whether a Terrazzo answers on the HTTP port."""
    return ask(config, "/healthz") == b'{"status":"ok"}'


def process_of(data_dir: Path) -> int | None:
    """The process whose control socket a data folder has; 0 where the system doesn't tell it, None where none listens.

    It may have other ports than the configuration says (``--http-port``).
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PROBE_TIMEOUT_S)
        try:
            with at_folder(data_dir) as address:
                connection.connect(address)
            if not hasattr(socket, "SO_PEERCRED"):
                return 0
            told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return None
        return int(_CREDENTIALS.unpack(told)[0])


def ask(config: Config, path: str) -> bytes:
    """What answers on the HTTP port, with status 200; empty where nothing does."""
    if not config.http.port:
        return b""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.http.host, config.http.host)  # is asked  # nosec B104
    host = f"[{host}]" if ":" in host else host
    scheme, context = ("https", _any_name()) if config.http.tls_cert else ("http", None)
    try:
        headers = {"Authorization": f"Bearer {config.metrics.token}"} if config.metrics.token else {}
        request = urllib.request.Request(f"{scheme}://{host}:{config.http.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=PROBE_TIMEOUT_S, context=context) as answer:  # nosec B310 - http
            return bytes(answer.read(_MOST_BYTES))
    except (OSError, ValueError):
        return b""


def _any_name() -> ssl.SSLContext:
    """Takes the certificate of any name: it is for the name that clients use, and an address of this host is asked."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
