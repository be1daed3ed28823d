"""What has to be so before a platform starts: one list, for ``terrazzo serve`` and ``terrazzo doctor``.

Each check yields findings and changes nothing.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from terrazzo.backup.migration.marker import MIGRATING
from terrazzo.backup.restoring import RESTORING
from terrazzo.cli.finding import Finding, Level
from terrazzo.cli.running import is_running, process_of
from terrazzo.config.broker import check_is_served
from terrazzo.config.sections import Config, ConfigError
from terrazzo.runtime.certificate_watch import DAY_S, WARN_DAYS, expiry_of, say_expiry
from terrazzo.runtime.extras import missing_extras
from terrazzo.runtime.port_in_use import explain_bind, listens
from terrazzo_broker.listeners.certificates import CertificateError, Certificates, TlsFiles

MIB = 2**20
FREE_FAIL = 100 * MIB
FREE_WARN = 1024 * MIB
SQLITE_NEEDED = (3, 35, 0)  # INSERT ... RETURNING

OTHER_FOLDER = "set data.dir (--data DIR, TERRAZZO_DATA__DIR) to another folder, or change its owner or mode"
OTHER_DATABASE = "correct database.url, or start the database server"

_log = logging.getLogger(__name__)


class StartRefused(ConfigError):
    """What keeps the platform from starting, a line each."""

    def __init__(self, findings: list[Finding]) -> None:
        self.lines = [f"{each.part}: {each.found}" + (f"; {each.advice}" if each.advice else "") for each in findings]
        super().__init__("; ".join(self.lines))


class StartCheck(NamedTuple):
    """One entry of the list.

    Attributes:
        run: the check; it may see that a platform runs with this configuration already.
        is_fatal: whether a failure keeps ``terrazzo serve`` from starting; it is only told otherwise.
    """

    run: Callable[[Config, Callable[[Config], bool]], Iterator[Finding]]
    is_fatal: bool = True


def check_start(config: Config) -> None:
    """Runs the list for a start: says what is worth a warning, and refuses what can't work.

    Raises:
        StartRefused: all that has to be mended first.
    """
    refused = []
    for check in START_CHECKS:
        for finding in check.run(config, lambda _: False):
            if finding.level is Level.FAIL and check.is_fatal:
                refused.append(finding)
            elif finding.level is not Level.OK:
                _log.warning("%s: %s; %s", finding.part, finding.found, finding.advice)
    if refused:
        raise StartRefused(refused)


def check_served(config: Config) -> Iterator[Finding]:
    """Checks that nothing is asked for that this version has not."""
    try:
        check_is_served(config)
    except ConfigError as error:
        key, _, why = str(error).partition(": ")
        yield Finding(Level.FAIL, key, why, "take it out of the configuration")


def check_versions() -> Iterator[Finding]:
    """Checks the versions of Python and of SQLite."""
    version = ".".join(map(str, sys.version_info[:3]))
    enough = sys.version_info >= (3, 11)
    yield Finding(
        Level.OK if enough else Level.FAIL, "python", version, "" if enough else "install Python 3.11 or newer"
    )
    enough = sqlite3.sqlite_version_info >= SQLITE_NEEDED
    advice = "" if enough else "use a Python that is built with SQLite 3.35 or newer, or set database.url to PostgreSQL"
    yield Finding(Level.OK if enough else Level.FAIL, "sqlite", sqlite3.sqlite_version, advice)


def check_extras(config: Config) -> Iterator[Finding]:
    """Checks that the packages are installed that only some settings need."""
    for extra in missing_extras(config):
        yield Finding(Level.FAIL, extra.key, extra.needs, extra.advice)


def check_data_dir(folder: Path) -> Iterator[Finding]:
    """Checks the data folder, and the modes of the secret files in it."""
    if not folder.exists():
        parent = _existing(folder)
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            yield Finding(Level.OK, "data.dir", f"{folder} will be made at the first start")
        else:
            what = "is not writable" if parent.is_dir() else "is not a folder"
            yield Finding(Level.FAIL, "data.dir", f"{parent} {what}", OTHER_FOLDER)
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        what = "is not writable" if folder.is_dir() else "is not a folder"
        yield Finding(Level.FAIL, "data.dir", f"{folder} {what}", OTHER_FOLDER)
        return
    if (folder / RESTORING).exists():
        advice = "remove the folder and restore again: what is there is not complete"
        yield Finding(Level.FAIL, "data.dir", f"{folder} has a restore that did not end", advice)
        return
    if (folder / MIGRATING).exists():
        advice = "start the same terrazzo migrate again, which goes on; or remove the folder: it is not complete"
        yield Finding(Level.FAIL, "data.dir", f"{folder} has a migration that did not end", advice)
        return
    yield Finding(Level.OK, "data.dir", str(folder))


def check_disk(folder: Path) -> Finding:
    """Checks the free space where the data folder is or will be."""
    free = shutil.disk_usage(_existing(folder)).free
    level = Level.FAIL if free < FREE_FAIL else Level.WARN if free < FREE_WARN else Level.OK
    advice = (
        "" if level is Level.OK else "free some, or set store.retention_days: a full disk stops all acknowledgements"
    )
    return Finding(level, "disk", f"{free / MIB:,.0f} MiB free", advice)


class Listener(NamedTuple):
    """An address that the platform will listen on."""

    key: str
    host: str
    port: int


def listeners(config: Config) -> list[Listener]:
    """All addresses that this configuration listens on."""
    found = [Listener("http.port", config.http.host, config.http.port)]
    if config.websocket.port is not None:
        found.append(Listener("websocket.port", config.websocket.host, config.websocket.port))
    if config.tcp.enabled:
        found.append(Listener("tcp.port", config.tcp.host, config.tcp.port))
    if config.broker.kind == "embedded":
        for key in ("port", "tls_port", "websocket_port", "websocket_tls_port"):
            port = getattr(config.mqtt, key)
            if port is not None:
                found.append(Listener(f"mqtt.{key}", config.mqtt.host, port))
    return found


def check_listeners(config: Config, runs: Callable[[Config], bool] = is_running) -> Iterator[Finding]:
    """Checks that each port is free, or used by this platform itself."""
    running = runs(config)
    process = process_of(config.data_dir) if running else None
    taken: dict[tuple[str, int], str] = {}
    for listener in listeners(config):
        address = listener.host, listener.port
        if listener.port and address in taken:
            yield Finding(
                Level.FAIL, listener.key, f"{listener.port} is {taken[address]} too", f"set {listener.key} to another"
            )
            continue
        taken[address] = listener.key
        yield _check_listener(listener, running=running, process=process)


def _is_of_another(port: int, process: int | None) -> bool:
    """Whether somebody else than the platform's process listens, as far as the system tells."""
    return process is not None and listens(process, port) is False


def _check_listener(listener: Listener, *, running: bool, process: int | None) -> Finding:
    key, host, port = listener
    if port == 0:
        return Finding(Level.OK, key, "any free port")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and running and not _is_of_another(port, process):
            return Finding(Level.OK, key, f"{host}:{port} is in use by the running Terrazzo")
        return Finding(Level.FAIL, key, *explain_bind(key, host, port, error))
    return Finding(Level.OK, key, f"{host}:{port} is free")


def check_certificates(config: Config) -> Iterator[Finding]:
    """Checks that the TLS files can be used, and how long the certificates are good."""
    if config.http.tls_cert:
        yield _check_pair("http", TlsFiles(cert=config.http.tls_cert, key=config.http.tls_key))
    mqtt = config.mqtt
    if mqtt.has_tls:
        yield _check_pair("mqtt", TlsFiles(cert=mqtt.tls_cert, key=mqtt.tls_key, client_ca=mqtt.tls_client_ca or None))


def _check_pair(section: str, files: TlsFiles) -> Finding:
    try:
        Certificates(files, protocol="http/1.1" if section == "http" else "mqtt")
        expires_s = expiry_of(Path(files.cert))
    except CertificateError as error:
        advice = "give it a PEM file that this user may read: the certificate with its chain, and its own key"
        return Finding(Level.FAIL, f"{section}.{error.setting}", error.reason, advice)
    now_s = time.time()
    found = f"{files.cert} {say_expiry(expires_s, now_s)}"
    if expires_s - now_s > WARN_DAYS * DAY_S:
        return Finding(Level.OK, f"{section}.tls_cert", found)
    advice = "put a new certificate and its key in place of the files: a running platform takes them by itself"
    return Finding(Level.WARN, f"{section}.tls_cert", found, advice)


def check_bridge_files(config: Config) -> Iterator[Finding]:
    """Checks that the TLS files of bridges can be used."""
    if not config.bridge:
        return
    from terrazzo.runtime.serve import check_bridge  # all of the platform

    for number, section in enumerate(config.bridge, 1):
        try:
            check_bridge(section, key=f"bridge[{number}]")
        except ConfigError as error:
            key, _, why = str(error).partition(": ")
            yield Finding(Level.FAIL, key, why, "give it PEM files that this user may read, the key not encrypted")


def _existing(path: Path) -> Path:
    """The nearest parent of ``path``, or itself, that exists."""
    path = path.absolute()
    return path if path.exists() else _existing(path.parent)


START_CHECKS = (
    StartCheck(lambda config, _: check_versions()),
    StartCheck(lambda config, _: check_served(config)),
    StartCheck(lambda config, _: check_extras(config)),
    StartCheck(lambda config, _: check_data_dir(config.data_dir)),
    StartCheck(lambda config, _: iter([check_disk(config.data_dir)]), is_fatal=False),
    StartCheck(check_listeners),
    StartCheck(lambda config, _: check_certificates(config)),
    StartCheck(lambda config, _: check_bridge_files(config)),
)
"""In the order in which ``doctor`` shows them."""
