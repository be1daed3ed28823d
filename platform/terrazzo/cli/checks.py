"""The checks of ``terrazzo doctor``. Each yields findings; none changes anything."""

from __future__ import annotations

import asyncio
import errno
import importlib
import os
import shutil
import socket
import sqlite3
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from terrazzo.config.http import is_loopback
from terrazzo.config.sections import Config
from terrazzo.errors import Unavailable
from terrazzo.ingest.decoder_process import GROUP
from terrazzo.runtime.data_folder import find_exposed
from terrazzo.runtime.descriptors import hard_limit, plan_descriptors
from terrazzo.runtime.memory_ceiling import memory_ceiling, memory_there_is
from terrazzo_broker.web_origin import ANY_ORIGIN

if TYPE_CHECKING:
    from terrazzo.crypto.secrets import Secrets
    from terrazzo.database.database import Database

MIB = 2**20
FREE_FAIL = 100 * MIB
FREE_WARN = 1024 * MIB
PROBE_TIMEOUT_S = 3.0
_MOST_BYTES = 16 * MIB  # of an answer
_MOST_NAMED = 10  # files, terminals
SQLITE_NEEDED = (3, 35, 0)  # INSERT ... RETURNING

MODULES = {
    "aiohttp": "aiohttp",
    "aiosmtplib": "aiosmtplib",
    "aiosqlite": "aiosqlite",
    "alembic": "alembic",
    "argon2-cffi": "argon2",
    "cryptography": "cryptography",
    "influxdb-client": "influxdb_client",
    "joserfc": "joserfc",
    "msgpack": "msgpack",
    "msgspec": "msgspec",
    "mqtt5": "mqtt5",
    "numpy": "numpy",
    "paho-mqtt": "paho.mqtt",
    "prometheus-client": "prometheus_client",
    "PyJWT": "jwt",
    "rich": "rich",
    "rocksdict": "rocksdict",
    "scramp": "scramp",
    "SQLAlchemy": "sqlalchemy",
    "typer": "typer",
    "tzdata": "tzdata",
    "uvloop": "uvloop",
}
"""Required packages, each with a module whose import shows that it works."""

_OPTIONAL = {"uvloop": "the platform runs without it, at about half the speed"}


class Level(Enum):
    """How serious a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """The result of one check: a line of the table."""

    level: Level
    part: str
    found: str
    advice: str = ""


class Listener(NamedTuple):
    """An address that the platform will listen on."""

    key: str
    host: str
    port: int


def examine(config: Config) -> Iterator[Finding]:
    """Runs all checks on a configuration that could be read."""
    yield from check_versions()
    yield from check_dependencies(config)
    yield from check_data_dir(config.data_dir)
    yield check_disk(config.data_dir)
    yield from check_listeners(config)
    yield check_descriptors(config)
    yield from check_metrics(config)
    yield from check_origins(config)
    yield from check_bridges(config)
    yield from check_decoders(config)
    yield from check_memory(config)
    yield from check_tasks(config)
    yield from asyncio.run(_collect_database(config))
    yield check_store(config)


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


def check_dependencies(config: Config) -> Iterator[Finding]:
    """Checks that every required package can be imported."""
    wanted = dict(MODULES)
    if config.database.url.startswith("postgres"):
        wanted["asyncpg"] = "asyncpg"
    missing = 0
    for package, module in wanted.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing += 1
            level = Level.WARN if package in _OPTIONAL else Level.FAIL
            advice = f"pip install {package}" + (f" ({_OPTIONAL[package]})" if package in _OPTIONAL else "")
            yield Finding(level, f"package {package}", str(error), advice)
    yield Finding(Level.OK, "packages", f"{len(wanted) - missing} of {len(wanted)} can be imported")


def check_data_dir(folder: Path) -> Iterator[Finding]:
    """Checks the data folder, and the modes of the secret files in it."""
    if not folder.exists():
        parent = _existing(folder)
        if os.access(parent, os.W_OK | os.X_OK):
            yield Finding(Level.OK, "data.dir", f"{folder} will be made at the first start")
        else:
            yield Finding(Level.FAIL, "data.dir", f"{parent} is not writable", "set data.dir, or change its owner")
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        what = "is not writable" if folder.is_dir() else "is not a folder"
        yield Finding(Level.FAIL, "data.dir", f"{folder} {what}", "set data.dir, or change its owner or mode")
        return
    yield Finding(Level.OK, "data.dir", str(folder))
    yield from _check_modes(folder)


def _check_modes(folder: Path) -> Iterator[Finding]:
    """Names what others than the owner may open, the first few one by one."""
    count = 0
    for exposed in find_exposed(folder):
        count += 1
        if count <= _MOST_NAMED:
            found = f"{exposed.path} has mode {exposed.mode:o}: others can look in"
            advice = f"chmod {'700' if exposed.is_folder else '600'} {exposed.path}; the next start does it too"
            yield Finding(Level.WARN, "permissions", found, advice)
    if count > _MOST_NAMED:
        advice = "start the platform as the owner of these files: it closes them"
        yield Finding(Level.WARN, "permissions", f"{count - _MOST_NAMED} more files and folders are open", advice)
    try:
        owner = folder.stat().st_uid
    except OSError:
        return
    if owner != os.geteuid():
        found = f"{folder} belongs to user {owner}, this is user {os.geteuid()}"
        yield Finding(Level.WARN, "permissions", found, "run the platform, and this, as the user whose folder it is")


def check_disk(folder: Path) -> Finding:
    """Checks the free space where the data folder is or will be."""
    free = shutil.disk_usage(_existing(folder)).free
    level = Level.FAIL if free < FREE_FAIL else Level.WARN if free < FREE_WARN else Level.OK
    advice = (
        "" if level is Level.OK else "free some, or set store.retention_days: a full disk stops all acknowledgements"
    )
    return Finding(level, "disk", f"{free / MIB:,.0f} MiB free", advice)


def listeners(config: Config) -> list[Listener]:
    """All addresses that this configuration listens on."""
    found = [
        Listener("http.port", config.http.host, config.http.port),
        Listener("websocket.port", config.websocket.host, config.websocket.port),
    ]
    if config.tcp.enabled:
        found.append(Listener("tcp.port", config.tcp.host, config.tcp.port))
    if config.broker.kind == "embedded":
        for key in ("port", "tls_port", "websocket_port"):
            port = getattr(config.mqtt, key)
            if port is not None:
                found.append(Listener(f"mqtt.{key}", config.mqtt.host, port))
    return found


def check_listeners(config: Config) -> Iterator[Finding]:
    """Checks that each port is free, or used by this platform itself."""
    running = _is_running(config)
    taken: dict[tuple[str, int], str] = {}
    for listener in listeners(config):
        address = listener.host, listener.port
        if listener.port and address in taken:
            yield Finding(
                Level.FAIL, listener.key, f"{listener.port} is {taken[address]} too", f"set {listener.key} to another"
            )
            continue
        taken[address] = listener.key
        yield _check_listener(listener, running=running)


def _check_listener(listener: Listener, *, running: bool) -> Finding:
    key, host, port = listener
    if port == 0:
        return Finding(Level.OK, key, "any free port")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and running:
            return Finding(Level.OK, key, f"{host}:{port} is in use by the running Terrazzo")
        advice = {
            errno.EADDRINUSE: f"stop what listens there, or set {key} to another port",
            errno.EACCES: f"ports below 1024 need a privilege: set {key} to a higher one",
        }.get(error.errno or 0, f"set {key.split('.', maxsplit=1)[0]}.host to an address of this machine")
        return Finding(Level.FAIL, key, f"{host}:{port}: {error.strerror}", advice)
    return Finding(Level.OK, key, f"{host}:{port} is free")


def _is_running(config: Config) -> bool:
    """Whether a Terrazzo answers on the HTTP port."""
    return _ask(config, "/healthz") == b'{"status":"ok"}'


def _ask(config: Config, path: str) -> bytes:
    """What answers on the HTTP port, with status 200; empty where nothing does."""
    if not config.http.port:
        return b""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.http.host, config.http.host)  # is asked  # nosec B104
    host = f"[{host}]" if ":" in host else host
    try:
        headers = {"Authorization": f"Bearer {config.metrics.token}"} if config.metrics.token else {}
        request = urllib.request.Request(f"http://{host}:{config.http.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=PROBE_TIMEOUT_S) as answer:  # http  # nosec B310
            return bytes(answer.read(_MOST_BYTES))
    except (OSError, ValueError):
        return b""


def check_metrics(config: Config) -> Iterator[Finding]:
    """Whether strangers may read ``/metrics``: it names terminals' numbers, tasks and versions."""
    if config.metrics.token or is_loopback(config.http.host):
        return
    found = f"/metrics is open to everybody who reaches {config.http.host}:{config.http.port}"
    yield Finding(Level.WARN, "metrics.token", found, "set metrics.token, or http.host to 127.0.0.1 behind a proxy")


def check_descriptors(config: Config) -> Finding:
    """Whether there are descriptors for as many connections as are configured."""
    plan = plan_descriptors(hard_limit(), config.limits.connections)
    if plan.is_enough:
        return Finding(Level.OK, "descriptors", f"{plan.total} (ulimit -Hn)")
    advice = f"raise the hard limit to {plan.needed} (LimitNOFILE= of systemd), or lower limits.connections"
    return Finding(Level.WARN, "descriptors", str(plan), advice)


def check_origins(config: Config) -> Iterator[Finding]:
    """Whether any page that a user's browser has open may ask."""
    if ANY_ORIGIN in config.http.allowed_origins:
        found = "any web page that a user looks at may send requests from the user's browser"
        yield Finding(Level.WARN, "http.allowed_origins", found, "name the origins of the pages that are yours")


def check_bridges(config: Config) -> Iterator[Finding]:
    """Whether what bridges bring in belongs to somebody: reports do, anything else only to a bridge's own company."""
    for number, bridge in enumerate(config.bridge, 1):
        patterns = [topic.local_prefix + topic.filter for topic in bridge.incoming]
        unowned = [pattern for pattern in patterns if pattern.split("/")[0] != "g"]
        if unowned and not bridge.company_id:
            found = f"what {bridge.name} brings in at {', '.join(unowned):.200} is nobody's, and goes to bridges alone"
            yield Finding(Level.WARN, f"bridge[{number}].company_id", found, "name the company whose messages they are")


def check_decoders(config: Config) -> Iterator[Finding]:
    """Whether each decoder that is allowed is installed, once."""
    from importlib.metadata import entry_points

    for name in config.ingest.decoders:
        found = [each.value for each in entry_points(group=GROUP, name=name)]
        if len(found) == 1:
            yield Finding(Level.OK, "ingest.decoders", f"{name}: {found[0]}")
            continue
        what = f"{name}: {', '.join(found)}, which of them?" if found else f"{name}: no package has it"
        advice = f"install one package with this entry point of {GROUP}, or take the name away: its reports are rejects"
        yield Finding(Level.FAIL, "ingest.decoders", what, advice)


def check_memory(config: Config) -> Iterator[Finding]:
    """How much memory there may be for what waits or is kept; of the platform that runs, if one does, who has it."""
    from terrazzo.cli.memory_use import memory_use_of

    ceiling, there_is = memory_ceiling(config.limits.memory_mib), memory_there_is()
    found = f"{ceiling // MIB:,} of {there_is // MIB:,} MiB for what waits or is kept (limits.memory_mib)"
    if ceiling * 2 > there_is:
        advice = "set limits.memory_mib to less: the platform, the database and files need some, too"
        yield Finding(Level.WARN, "memory", found, advice)
    else:
        yield Finding(Level.OK, "memory", found)
    use = memory_use_of(_ask(config, "/metrics").decode("utf-8", "replace")) if _is_running(config) else None
    if use is not None:
        advice = "find out what the largest company does, or raise limits.memory_mib" if use.is_tight else ""
        yield Finding(Level.WARN if use.is_tight else Level.OK, "memory in use", str(use), advice)


def check_tasks(config: Config) -> Iterator[Finding]:
    """The long-lived tasks of the platform that runs, if one does: which are down, and which have failed."""
    if not _is_running(config):
        return
    figures = _task_figures(_ask(config, "/metrics").decode("utf-8", "replace"))
    errors = {task["task"]: task["error"] for task, _ in figures["terrazzo_task_last_error_info"]}
    failures = {task["task"]: count for task, count in figures["terrazzo_task_failures_total"]}
    up = {task["task"]: value for task, value in figures["terrazzo_task_up"]}
    for name, count in failures.items():
        if count:
            found = f"{name} failed {count:.0f} times, the last by {errors.get(name, 'an unknown error')}"
            state = "runs again" if up.get(name) else "is down"
            yield Finding(Level.WARN, "tasks", f"{found}; it {state}", "see the log of the platform")
    running = sum(up.values())
    level = Level.OK if running == len(up) else Level.WARN
    yield Finding(level, "tasks", f"{running:.0f} of {len(up)} long-lived tasks are up")


def _task_figures(metrics: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The samples of tasks by metric: labels and value."""
    from prometheus_client.parser import text_string_to_metric_families

    found: defaultdict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name.startswith("terrazzo_task_"):
                found[sample.name].append((sample.labels, sample.value))
    return found


async def _collect_database(config: Config) -> list[Finding]:
    from terrazzo.database.database import Database
    from terrazzo.database.migration import DatabaseOutdated, DatabaseUnusable

    try:
        database = await Database.open(config.database.url, data_dir=config.data_dir, upgrade=False)
    except DatabaseOutdated as error:
        return [Finding(Level.OK, "database", f"{error.found}; the next start of the server brings it up to date")]
    except DatabaseUnusable as error:
        return [Finding(Level.FAIL, "database", str(error), "correct database.url, or start the database server")]
    try:
        found = Finding(Level.OK, "database", "reachable and up to date")
        told, secrets = await _check_secrets(database, config)
        pins = [] if secrets is None else await check_pins(database, secrets, config.limits.pin_chars)
        keys = [] if secrets is None else await check_keys(database, secrets)
        told += [*pins, *keys, *await check_scripts(database), *await _check_quotas(database, config)]
        return [found, await _check_admin(database), *told]
    except Unavailable as error:
        return [Finding(Level.FAIL, "database", str(error), "correct database.url, or start the database server")]
    finally:
        await database.close()


async def _check_admin(database: Database) -> Finding:
    from terrazzo.metadata.definitions.registry import USER

    table = USER.table
    async with database.reading() as connection:
        query = table.select().where(table.c.is_super == 1, table.c.is_active == 1).limit(1)
        if (await connection.execute(query)).first() is None:
            return Finding(Level.WARN, "users", "no active super user", "terrazzo user add NAME --role admin --super")
    return Finding(Level.OK, "users", "there is an active super user")


async def _check_quotas(database: Database, config: Config) -> list[Finding]:
    from terrazzo.metadata.event_quotas import EventQuotas
    from terrazzo.metadata.excesses import find_excesses
    from terrazzo.metadata.quotas import RecordQuotas

    advice = "raise the limit in the configuration, or have the company delete what it doesn't need"
    excesses = await find_excesses(database, RecordQuotas.of(config.limits), EventQuotas.of(config.limits))
    return [Finding(Level.WARN, "quotas", excess, advice) for excess in excesses]


async def _check_secrets(database: Database, config: Config) -> tuple[list[Finding], Secrets | None]:
    """Checks that the key at hand decrypts the stored secrets, and returns it; a missing key is not made here."""
    from terrazzo.crypto.secrets import KEY_FILE, Secrets, SecretUnreadable
    from terrazzo.metadata.definitions.registry import TERMINAL

    async with database.reading() as connection:
        sealed = (await connection.execute(TERMINAL.table.select().limit(1))).mappings().first()
    if sealed is None:
        return [Finding(Level.OK, "secrets", "none stored")], None
    path, key = config.data_dir / KEY_FILE, config.database.secrets_key
    advice = f"restore {path} from a backup, or set database.secrets_key to the key that was in force"
    if not key and not path.exists():
        return [Finding(Level.FAIL, "secrets", f"{path} is gone: no terminal can log in", advice)], None
    try:
        secrets = Secrets.open(config.data_dir, key=key, old_key=config.database.secrets_key_old)
        secrets.unseal(sealed["pin"], f"{TERMINAL.name}.pin")
    except (SecretUnreadable, ValueError, OSError) as error:
        return [Finding(Level.FAIL, "secrets", str(error), advice)], None
    found = [Finding(Level.OK, "secrets", "the key opens the stored pins")]
    if secrets.is_replacing:
        advice = "terrazzo keys rotate --secrets goes on with it"
        found.append(Finding(Level.WARN, "secrets", "a replacement of the key was not finished", advice))
    return found, secrets


async def check_pins(database: Database, secrets: Secrets, pin_chars: int) -> list[Finding]:
    """Terminals whose pins are easily guessed: short, equal to another's, or to the terminal's own names."""
    from terrazzo.cli.weak_pins import SHORT_PIN, find_weak_pins, names

    shortest = max(pin_chars, SHORT_PIN)
    weak = await find_weak_pins(database, secrets, pin_chars=shortest)
    advice = f"give them random pins of {shortest} characters or more; limits.pin_chars asks for it of new ones"
    return [
        Finding(Level.WARN, "pins", f"{what}: {names(uids)}", advice)
        for what, uids in (
            (f"pins of fewer than {shortest} characters", weak.short),
            ("pins that are the terminal's uid or username", weak.own_name),
            ("pins that several terminals have", weak.shared),
        )
        if uids
    ]


async def check_keys(database: Database, secrets: Secrets) -> list[Finding]:
    """Terminals whose RSA keys are longer than new ones may be."""
    from terrazzo.cli.long_keys import find_long_keys
    from terrazzo.cli.weak_pins import names

    found = await find_long_keys(database, secrets)
    advice = "give them keys of 2,048 to 4,096 bits: longer ones work on, and take long to open"
    return [Finding(Level.WARN, "keys", f"long RSA keys: {names(found)}", advice)] if found else []


async def check_scripts(database: Database) -> list[Finding]:
    """Names scripts that an earlier version stored and that would be refused now, the first few one by one."""
    from terrazzo.cli.stored_scripts import find_refused_scripts

    found = [each async for each in find_refused_scripts(database)]
    advice = "what can be read of it works on; correct it with its next change, which is refused otherwise"
    told = [
        Finding(Level.WARN, "scripts", f"{each.entity} {each.record_id} {each.name!r}: script: {each.reason}", advice)
        for each in found[:_MOST_NAMED]
    ]
    more = len(found) - len(told)
    return [*told, Finding(Level.WARN, "scripts", f"{more} more scripts are like that", advice)] if more else told


def check_store(config: Config) -> Finding:
    """Checks the folder of the time series, or that the InfluxDB server answers."""
    if config.store.kind == "embedded":
        folder = config.store_dir
        if not folder.exists():
            return Finding(Level.OK, "store", f"{folder} will be made at the first start")
        if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return Finding(Level.OK, "store", str(folder))
        return Finding(Level.FAIL, "store", f"{folder} is not writable", "change its owner or mode")
    from terrazzo.database.field import without_userinfo

    ping = f"{config.store.url.rstrip('/')}/ping"
    try:
        if not ping.startswith(("http://", "https://")):
            raise ValueError("expected http:// or https://")
        with urllib.request.urlopen(ping, timeout=PROBE_TIMEOUT_S) as answer:  # HTTP, see above  # nosec B310
            version = answer.headers.get("X-Influxdb-Version", "of unknown version")
            return Finding(Level.OK, "store", f"InfluxDB {version} answers at {without_userinfo(config.store.url)}")
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        advice = "start InfluxDB, or correct store.url"
        return Finding(Level.FAIL, "store", f"{without_userinfo(config.store.url)}: {reason}", advice)


def _existing(path: Path) -> Path:
    """The nearest parent of ``path``, or itself, that exists."""
    path = path.absolute()
    return path if path.exists() else _existing(path.parent)
