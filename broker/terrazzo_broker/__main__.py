"""``python -m terrazzo_broker``: the broker alone."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path

from .access.errors import AccessFileError
from .access.file_hooks import FileHooks
from .access.folder_modes import close_to_others
from .admission.descriptors import room_for_sockets
from .admission.limits import SPARE_SOCKETS
from .broker import Broker
from .listeners.certificates import CertificateError, TlsFiles
from .log_text import log_to
from .settings import BrokerSettings
from .standalone import OpenHooks
from .storage import MemoryStorage, Storage, StorageError

log = logging.getLogger("terrazzo_broker")

CLOSE_TIMEOUT_S = 5.0
RECEIVE_MAXIMUM = 1_000  # within what test suites go beyond on purpose; they run out of identifiers at the default
CONNECT_BYTES = 6 << 16  # room for each field of a CONNECT to be as long as MQTT allows
UNLIMITED = 1 << 30  # alone it serves tests and benchmarks, which connect as fast as they can


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT; the exit status."""
    options = _parser().parse_args(arguments)
    log_to(sys.stderr, options.log_level.upper())
    os.umask(0o077)  # sessions and messages on disk are nobody else's business
    try:
        _check(options)
        _run(serve(_settings(options), options))
    except CertificateError as error:
        _say_last(f"--{error.setting.replace('_', '-')}: {error.reason}")
        return 1
    except (OSError, ValueError, StorageError) as error:
        _say_last(str(error))
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="terrazzo_broker", description="An MQTT 3.1, 3.1.1 and 5.0 broker.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_port, default=1883, help="0 takes any free port")
    parser.add_argument(
        "--allow-anonymous", action="store_true", help="without it, who has no user in --password-file is refused"
    )
    parser.add_argument("--password-file", type=Path, metavar="FILE", help="users, as mosquitto_passwd writes them")
    parser.add_argument("--acl", type=Path, metavar="FILE", help="rights on topics, in Mosquitto's format")
    parser.add_argument("--max-keepalive", type=int, default=0, metavar="S", help="longest Keep Alive in seconds")
    parser.add_argument("--tls-port", type=_port, metavar="P", help="TLS 1.2 and 1.3; 0 takes any free port")
    parser.add_argument("--tls-cert", metavar="FILE", help="PEM, the server's certificate and its chain")
    parser.add_argument("--tls-key", metavar="FILE", help="PEM, the certificate's key")
    parser.add_argument("--tls-client-ca", metavar="FILE", help="PEM, who signs certificates that clients may show")
    parser.add_argument("--websocket-port", type=_port, metavar="P", help="MQTT over WebSocket, path /mqtt")
    parser.add_argument("--secure-websocket-port", type=_port, metavar="P", help="the same with TLS")
    parser.add_argument("--unix", metavar="PATH", help="a Unix socket, mode 0660")
    parser.add_argument(
        "--proxy-protocol", action="store_true", help="--port and --tls-port take the PROXY protocol, and nothing else"
    )
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="NETWORK",
        help="address or network of a proxy that names its clients; may be given several times",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="keeps sessions, messages and wills over a restart")
    parser.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"))
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def _check(options: argparse.Namespace) -> None:
    wants_tls = options.tls_port is not None or options.secure_websocket_port is not None
    for name in ("tls_cert", "tls_key"):
        if wants_tls and getattr(options, name) is None:
            raise CertificateError(name, "needed for --tls-port and --secure-websocket-port")
    if not wants_tls and any((options.tls_cert, options.tls_key, options.tls_client_ca)):
        raise ValueError("--tls-cert, --tls-key and --tls-client-ca need --tls-port or --secure-websocket-port")


def _settings(options: argparse.Namespace) -> BrokerSettings:
    return BrokerSettings(
        max_keepalive_s=options.max_keepalive,
        connect_bytes=CONNECT_BYTES,
        connects_per_second=0,
        sockets=_room_for_sockets(),
        half_open=UNLIMITED,
        half_open_per_address=UNLIMITED,
        trusted_proxies=tuple(options.trusted_proxy),
        inflight_from_client=RECEIVE_MAXIMUM,
    )


def _room_for_sockets() -> int:
    wanted = BrokerSettings().connections + SPARE_SOCKETS
    room = room_for_sockets(wanted)
    if room < wanted:
        log.warning("the limit of descriptors (ulimit -n) leaves room for %d sockets, not %d", room, wanted)
    return room


def _run(work: Coroutine[None, None, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


async def serve(settings: BrokerSettings, options: argparse.Namespace) -> None:
    """Opens the listeners, prints their addresses, and serves until SIGTERM or SIGINT."""
    hooks = _hooks(options)
    by_files = hooks if isinstance(hooks, FileHooks) else None
    broker = Broker(settings, hooks, _storage(options), may_receive=None if by_files is None else by_files.may_receive)
    if by_files is not None:
        by_files.attach(broker)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        places = await _listen(broker, options)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, _reload, broker, by_files)
        gc.freeze()  # what exists by now stays: the collector needn't look at it again
        print(*(f"listening on {place}" for place in places), sep="\n", flush=True)
        await stop.wait()
    finally:
        await broker.close(CLOSE_TIMEOUT_S)
        if by_files is not None:
            by_files.close()


def _hooks(options: argparse.Namespace) -> OpenHooks | FileHooks:
    if options.password_file is None and options.acl is None:
        return OpenHooks(anonymous=options.allow_anonymous)
    if options.password_file is None:
        log.warning("--acl without --password-file: user names are believed")
    return FileHooks(password_file=options.password_file, acl_file=options.acl, anonymous=options.allow_anonymous)


def _storage(options: argparse.Namespace) -> Storage:
    if options.data is None:
        return MemoryStorage()
    from .persistence import DiskStorage  # not before it is asked for: RocksDB takes a while to load

    close_to_others(options.data)
    return DiskStorage(options.data)


async def _listen(broker: Broker, options: argparse.Namespace) -> list[str]:
    host, proxy = options.host, options.proxy_protocol
    places = [f"{host}:{await broker.listen_tcp(host, options.port, proxy_protocol=proxy)}"]
    files = TlsFiles(cert=options.tls_cert, key=options.tls_key, client_ca=options.tls_client_ca)
    if options.tls_port is not None:
        port = await broker.listen_tls(
            host, options.tls_port, cert=files.cert, key=files.key, client_ca=files.client_ca, proxy_protocol=proxy
        )
        places.append(f"{host}:{port} (TLS)")
    if options.websocket_port is not None:
        places.append(f"{host}:{await broker.listen_websocket(host, options.websocket_port)} (WebSocket)")
    if options.secure_websocket_port is not None:
        port = await broker.listen_websocket(host, options.secure_websocket_port, tls=files)
        places.append(f"{host}:{port} (secure WebSocket)")
    if options.unix is not None:
        await broker.listen_unix(options.unix)
        places.append(f"{options.unix} (Unix socket)")
    return places


def _say_last(text: str) -> None:
    """Says why it ends, after the log, which a thread writes, and in one piece."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    sys.stderr.write(f"terrazzo_broker: {text}\n")


def _reload(broker: Broker, hooks: FileHooks | None) -> None:
    """Reads the files again, on SIGHUP; those that can't be used change nothing."""
    _reload_certificates(broker)
    if hooks is None:
        return
    try:
        ended = hooks.reload()
    except AccessFileError as error:
        log.error("users and rights stay as they were: %s", error)  # noqa: TRY400 - the text says it all
    else:
        log.info("users and rights reloaded; %d clients disconnected", ended)


def _reload_certificates(broker: Broker) -> None:
    try:
        broker.reload_certificates()
    except CertificateError as error:
        log.error("certificates stay as they were: %s", error)  # noqa: TRY400 - the text says it all
    else:
        log.info("certificates reloaded")


if __name__ == "__main__":
    sys.exit(main())
