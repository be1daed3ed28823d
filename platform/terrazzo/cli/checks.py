"""The checks of ``terrazzo doctor``. Each yields findings; none changes anything."""

from __future__ import annotations

import asyncio
import importlib
import os
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from terrazzo.cli import running
from terrazzo.cli.backup_checks import check_backups
from terrazzo.cli.damage.checks import check_damage
from terrazzo.cli.finding import Finding, Level
from terrazzo.cli.start_checks import MIB, OTHER_DATABASE, START_CHECKS
from terrazzo.config.http import is_loopback
from terrazzo.config.sections import Config
from terrazzo.errors import Unavailable
from terrazzo.ingest.decoder_process import GROUP
from terrazzo.runtime.descriptors import hard_limit, plan_of
from terrazzo.runtime.memory_ceiling import memory_ceiling, memory_there_is
from terrazzo_broker.access.folder_modes import find_exposed
from terrazzo_broker.web_origin import ANY_ORIGIN

if TYPE_CHECKING:
    from terrazzo.crypto.secrets import Secrets
    from terrazzo.database.database import Database

_MOST_NAMED = 10  # files, terminals

MODULES = {
    "aiohttp": "aiohttp",
    "aiosmtplib": "aiosmtplib",
    "aiosqlite": "aiosqlite",
    "alembic": "alembic",
    "argon2-cffi": "argon2",
    "cryptography": "cryptography",
    "google-re2": "re2",
    "influxdb-client": "influxdb_client",
    "joserfc": "joserfc",
    "msgpack": "msgpack",
    "msgspec": "msgspec",
    "mqtt5": "mqtt5",
    "numpy": "numpy",
    "paho-mqtt": "paho.mqtt",
    "pcodec": "pcodec",
    "prometheus-client": "prometheus_client",
    "PyJWT": "jwt",
    "rich": "rich",
    "rocksdict": "rocksdict",
    "scramp": "scramp",
    "SQLAlchemy": "sqlalchemy",
    "typer": "typer",
    "tzdata": "tzdata",
    "uvloop": "uvloop",
    "zstandard": "zstandard",
}
"""Required packages, each with a module whose import shows that it works."""

_OPTIONAL = {"uvloop": "the platform runs without it, at about half the speed"}


_SEGMENTS_S = 10.0  # for reading what is packed, some hundred thousand records


def examine(config: Config) -> Iterator[Finding]:
    """Runs all checks on a configuration that could be read."""
    for check in START_CHECKS:
        yield from check.run(config, running.is_running)
    yield from check_dependencies(config)
    yield from check_permissions(config.data_dir)
    yield from check_certificates_in_use(config)
    yield check_descriptors(config)
    yield from check_metrics(config)
    yield from check_origins(config)
    yield from check_bridges(config)
    yield from check_decoders(config)
    yield from check_memory(config)
    yield from check_tasks(config)
    yield from asyncio.run(_collect_database(config))
    yield check_store(config)
    yield from check_outage(config)
    yield from check_sealing(config)
    yield from check_segments(config)
    yield from check_damage(config)
    yield from check_backups(config)


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


def check_permissions(folder: Path) -> Iterator[Finding]:
    """Names what others than the owner may open in the data folder, the first few one by one."""
    if not folder.is_dir():
        return
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


def check_certificates_in_use(config: Config) -> Iterator[Finding]:
    """Whether the platform that runs, if one does, goes on with former certificates because it can't use the files."""
    if not config.http.tls_cert and not config.mqtt.has_tls:
        return
    for labels, value in _samples(config)["terrazzo_certificate_stale"]:
        if value:
            found = "the running platform can't use the files as they are, and goes on with the former certificate"
            advice = "see its log; put a certificate and the key that belongs to it in their place"
            yield Finding(Level.WARN, f"{labels['listener']}.tls_cert", found, advice)


def check_metrics(config: Config) -> Iterator[Finding]:
    """Whether strangers may read ``/metrics``: it names terminals' numbers, tasks and versions."""
    if config.metrics.token or is_loopback(config.http.host):
        return
    found = f"/metrics is open to everybody who reaches {config.http.host}:{config.http.port}"
    yield Finding(Level.WARN, "metrics.token", found, "set metrics.token, or http.host to 127.0.0.1 behind a proxy")


def check_descriptors(config: Config) -> Finding:
    """Whether there are descriptors for as many connections as are configured."""
    plan = plan_of(hard_limit(), config.limits)
    if plan.is_enough:
        return Finding(Level.OK, "descriptors", f"{plan.total} (ulimit -Hn)")
    advice = f"raise the hard limit to {plan.needed} (LimitNOFILE= of systemd), or lower {plan.limits}"
    return Finding(Level.WARN, "descriptors", str(plan), advice)


def check_origins(config: Config) -> Iterator[Finding]:
    """Whether any page that a user's browser has open may ask."""
    if ANY_ORIGIN in config.http.allowed_origins:
        found = "any web page that a user looks at may send requests from the user's browser"
        yield Finding(Level.WARN, "http.allowed_origins", found, "name the origins of the pages that are yours")


def check_bridges(config: Config) -> Iterator[Finding]:
    """Whether what bridges bring in belongs to somebody: reports do, anything else only to a bridge's own company."""
    for number, bridge in enumerate(config.bridge, 1):
        patterns = [topic.local_prefix + topic.topics for topic in bridge.incoming]
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
    use = memory_use_of(running.ask(config, "/metrics").decode("utf-8", "replace")) if running.answers(config) else None
    if use is not None:
        advice = "find out what the largest company does, or raise limits.memory_mib" if use.is_tight else ""
        yield Finding(Level.WARN if use.is_tight else Level.OK, "memory in use", str(use), advice)


def check_tasks(config: Config) -> Iterator[Finding]:
    """The long-lived tasks of the platform that runs, if one does: which are down, and which have failed."""
    if not running.answers(config):
        if running.is_running(config):
            found = f"the platform that runs on {config.data_dir} does not answer at http.port {config.http.port}"
            yield Finding(Level.WARN, "tasks", found, "say --http-port N and --mqtt-port N as terrazzo serve was told")
        return
    figures = _samples(config)
    errors = {task["task"]: task["error"] for task, _ in figures["terrazzo_task_last_error_info"]}
    failures = {task["task"]: count for task, count in figures["terrazzo_task_failures_total"]}
    up = {task["task"]: value for task, value in figures["terrazzo_task_up"]}
    for name, count in failures.items():
        if count:
            found = f"{name} failed {count:.0f} times, the last by {errors.get(name, 'an unknown error')}"
            state = "runs again" if up.get(name) else "is down"
            yield Finding(Level.WARN, "tasks", f"{found}; it {state}", "see the log of the platform")
    count_up = sum(up.values())
    level = Level.OK if count_up == len(up) else Level.WARN
    yield Finding(level, "tasks", f"{count_up:.0f} of {len(up)} long-lived tasks are up")


def _samples(config: Config) -> dict[str, list[tuple[dict[str, str], float]]]:
    """What ``/metrics`` of the platform that runs says, by metric: labels and value."""
    from prometheus_client.parser import text_string_to_metric_families

    found: defaultdict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    for family in text_string_to_metric_families(running.ask(config, "/metrics").decode("utf-8", "replace")):
        for sample in family.samples:
            found[sample.name].append((sample.labels, sample.value))
    return found


async def _collect_database(config: Config) -> list[Finding]:
    from terrazzo.database.damaged_file import DatabaseDamaged
    from terrazzo.database.database import Database
    from terrazzo.database.migration import DatabaseOutdated, DatabaseUnusable

    try:
        database = await Database.open(config.database.url, data_dir=config.data_dir, upgrade=False)
    except DatabaseDamaged as error:
        return [Finding(Level.FAIL, "database", error.found, error.advice)]
    except DatabaseOutdated as error:
        return [Finding(Level.OK, "database", f"{error.found}; the next start of the server brings it up to date")]
    except DatabaseUnusable as error:
        return [Finding(Level.FAIL, "database", str(error), OTHER_DATABASE)]
    try:
        found = Finding(Level.OK, "database", "reachable and up to date")
        told, secrets = await _check_secrets(database, config)
        pins = [] if secrets is None else await check_pins(database, secrets, config.limits.pin_chars)
        keys = [] if secrets is None else await check_keys(database, secrets)
        told += [*pins, *keys, *await check_scripts(database), *await _check_quotas(database, config)]
        return [found, await _check_admin(database), *told]
    except Unavailable as error:
        return [Finding(Level.FAIL, "database", str(error), OTHER_DATABASE)]
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
    from terrazzo.metadata.excesses import find_excesses

    advice = "raise the limit in the configuration, or have the company delete what it doesn't need"
    return [Finding(Level.WARN, "quotas", excess, advice) for excess in await find_excesses(database, config.limits)]


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


def check_outage(config: Config) -> Iterator[Finding]:
    """Since when the platform that runs, if one does, is without InfluxDB, and how much waits for it."""
    if config.store.kind != "influxdb":
        return
    samples = _samples(config)
    figures = {
        name: sum(value for _, value in samples[f"terrazzo_store_{name}"])
        for name in ("away_since_seconds", "spool_batches", "spool_bytes")
    }
    if figures["away_since_seconds"]:
        since = datetime.fromtimestamp(figures["away_since_seconds"], UTC).isoformat(timespec="seconds")
        waits = (
            f"{figures['spool_batches']:.0f} batches ({figures['spool_bytes'] / MIB:.1f} MiB) of records wait on disk"
        )
        found = f"the running platform is without InfluxDB since {since}; {waits}"
        yield Finding(Level.WARN, "store", found, "start InfluxDB: what waits is sent then, in order")


def check_sealing(config: Config) -> Iterator[Finding]:
    """How far the platform that runs, if one does, has put its time series into segments, and what can't be read."""
    if config.store.kind != "embedded":
        return
    samples = _samples(config)
    figures = {
        name: sum(value for _, value in samples[f"terrazzo_store_{name}"])
        for name in ("sealing_looked_ratio", "sealing_waits_for_disk", "damaged_segments")
    }
    if figures["damaged_segments"]:
        found = (
            f"{figures['damaged_segments']:.0f} segments of time series can't be read in part; the log has their times"
        )
        yield Finding(Level.FAIL, "segments", found, "look after the disk, and restore the store from a backup")
    if figures["sealing_waits_for_disk"]:
        found = f"less than {config.store.seal_free_mib} MiB of the disk are free: time series are not packed"
        yield Finding(Level.WARN, "segments", found, "free some, or lower store.seal_free_mib")
    elif 0 < figures["sealing_looked_ratio"] < 1:
        seen = f"{figures['sealing_looked_ratio']:.0%} of all series looked at"
        yield Finding(Level.OK, "segments", f"time series are being packed: {seen}")


def check_segments(config: Config) -> Iterator[Finding]:
    """Reads what the embedded store has packed, as far as there is time, and names what can't be read."""
    if config.store.kind != "embedded" or running.is_running(config) or not (config.store_dir / "CURRENT").exists():
        return
    from terrazzo.ports.store import StoreUnavailable
    from terrazzo.runtime.serve import find_damaged_segments

    try:
        checked, damaged = find_damaged_segments(config, most_s=_SEGMENTS_S)
    except StoreUnavailable as error:
        yield Finding(Level.FAIL, "segments", str(error), "restore the store from a backup")
        return
    for each in damaged:
        yield Finding(Level.FAIL, "segments", each, "look after the disk, and restore the store from a backup")
    if checked and not damaged:
        yield Finding(Level.OK, "segments", f"the {checked:,} that were read in {_SEGMENTS_S:.0f} s or less are whole")


def check_store(config: Config) -> Finding:
    """Checks the folder of the time series, or that the InfluxDB server answers."""
    if config.store.kind == "embedded":
        folder = config.store_dir
        if not folder.exists():
            return Finding(Level.OK, "store", f"{folder} will be made at the first start")
        if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return Finding(Level.OK, "store", str(folder))
        return Finding(Level.FAIL, "store", f"{folder} is not writable", "change its owner or mode")
    from terrazzo.userinfo import is_http_address, shown_address, without_user

    shown, advice = shown_address(config.store.url), "start InfluxDB, or correct store.url"
    if not is_http_address(config.store.url):
        return Finding(Level.FAIL, "store", f"{shown}: expected an address like http://host:8086", advice)
    ping = f"{without_user(config.store.url).rstrip('/')}/ping"
    try:
        with urllib.request.urlopen(ping, timeout=running.PROBE_TIMEOUT_S) as answer:  # HTTP, see above  # nosec B310
            version = answer.headers.get("X-Influxdb-Version", "of unknown version")
            return Finding(Level.OK, "store", f"InfluxDB {version} answers at {shown}")
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Finding(Level.FAIL, "store", f"{shown}: {reason}", advice)
