"""``terrazzo serve``: the platform in the foreground, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from terrazzo.cli.json_log import JsonFormatter
from terrazzo.cli.options import ConfigOption, DataOption, HttpPortOption, MqttPortOption, RoleOption, read_config
from terrazzo.cli.shown import PRIVATE_UMASK
from terrazzo.cli.start_checks import OTHER_DATABASE, OTHER_FOLDER, check_start
from terrazzo.config.sections import Config, ConfigError, LoggingSection
from terrazzo.system_trust import load_aiohttp
from terrazzo_broker.log_text import log_to

if TYPE_CHECKING:
    from terrazzo.access.users import FirstAdmin
    from terrazzo.demo.passwords import DemoPasswords
    from terrazzo.ports.store import TimeSeriesStore
    from terrazzo.runtime.serve import ListenAddresses, Platform

_STORE_S = 3.0  # that a start waits for the store's server to answer, before it says where everything is
_GC_AFTER = 1_000_000  # objects: next to nothing of what a start imports and makes is garbage


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo serve``."""
    app.command()(serve)


def serve(
    config: ConfigOption = None,
    data: DataOption = None,
    http_port: HttpPortOption = None,
    mqtt_port: MqttPortOption = None,
    role: RoleOption = "",
    demo: Annotated[bool, typer.Option("--demo", help="With demo data and a small simulated fleet.")] = False,
    log_level: Annotated[
        str, typer.Option(help="debug, info, warning or error, instead of logging.level.", show_default=False)
    ] = "",
) -> None:
    """Serve the platform until SIGTERM or Ctrl-C."""
    if log_level.upper() not in logging.getLevelNamesMapping() and log_level:
        raise typer.BadParameter(f"{log_level!r} is none of debug, info, warning, error", param_hint="--log-level")
    loaded = read_config(config, data).with_ports(http=http_port, mqtt=mqtt_port)
    loaded = loaded.with_role(role) if role else loaded
    _log_as(loaded.logging, log_level)
    os.umask(PRIVATE_UMASK)
    raise typer.Exit(_run(loaded, demo=demo))


def _log_as(section: LoggingSection, level: str) -> None:
    log_to(sys.stderr, (level or section.level).upper(), JsonFormatter() if section.format == "json" else None)
    logging.captureWarnings(True)


def _run(config: Config, *, demo: bool) -> int:
    gc.set_threshold(_GC_AFTER)
    load_aiohttp()
    from terrazzo.database.migration import DatabaseUnusable
    from terrazzo.ports.store import StoreUnavailable
    from terrazzo.runtime.allocator import settle_algebra, settle_allocator
    from terrazzo.runtime.process import new_event_loop, run, run_front

    if demo and config.mqtt.port is None:
        raise ConfigError("mqtt.port: is off, and the simulated fleet of --demo needs it: set it, or leave --demo out")
    if demo and config.cluster.role == "front":
        raise ConfigError("cluster.role: is front, and --demo needs the whole platform: leave --demo out")
    check_start(config)
    settle_allocator()
    settle_algebra()
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            if config.cluster.role == "front":
                return runner.run(run_front(config))
            return runner.run(run(config, started=_start_demo if demo else _greet))
    except (DatabaseUnusable, StoreUnavailable, OSError, ValueError) as error:
        raise ConfigError(_explained(error, config.data_dir)) from error


def _explained(error: Exception, folder: Path) -> str:
    """What ended a start, and what to do where the error doesn't say it itself."""
    from terrazzo.database.migration import DatabaseUnusable

    said, at = str(error), getattr(error, "filename", None)
    if isinstance(error, DatabaseUnusable):
        return said if "; " in said else f"{said}; {OTHER_DATABASE}"
    if not isinstance(error, OSError) or not at or not Path(str(at)).absolute().is_relative_to(folder.absolute()):
        return said
    return f"data.dir: {at}: {error.strerror}; {OTHER_FOLDER}"


async def _greet(platform: Platform, addresses: ListenAddresses) -> None:
    """Prints all addresses, and once where the first administrator's password is."""
    print("Terrazzo is ready.")
    for line in await _say_away(platform.store):
        print(line)
    print(f"  console    {addresses.http}/")
    print("  gateway    " + "  ".join(f"{each}/apiproxy/api" for each in (addresses.http, addresses.websocket) if each))
    if addresses.tcp:
        print(f"             {addresses.tcp}")
    print(f"  terminals  {'  '.join(addresses.mqtt)}")
    print(f"  documents  {addresses.http}/docs")
    print(f"  data       {platform.config.data_dir.resolve()}")
    admin = platform.metadata.first_admin
    if admin is not None:
        print(f"  login      {_login_of(admin)}")
    sys.stdout.flush()


async def _say_away(store: TimeSeriesStore) -> list[str]:
    """What works without the store's server, where it does not answer."""
    from terrazzo.ports.store import StoreUnavailable

    try:
        await asyncio.wait_for(store.check(), _STORE_S)
    except (StoreUnavailable, TimeoutError) as error:
        return [
            f"  but the time series are away: {str(error) or f'no answer within {_STORE_S:.0f} s'}",
            "             reports wait on disk until the store is back, what asks for them is refused;",
            "             start InfluxDB, or correct store.url",
        ]
    return []


def _login_of(admin: FirstAdmin) -> str:
    """The first login; a password that nobody has chosen is shown where somebody looks on, not to a journal."""
    if admin.file is None:
        return f"{admin.username}, with the password of admin.password"
    shown = f": {admin.password}" if sys.stdout.isatty() else ""
    return f"{admin.username}, with the password in {admin.file.resolve()}{shown}"


async def _start_demo(platform: Platform, addresses: ListenAddresses) -> None:
    """Prints the addresses, adds demo data and a simulated fleet, and prints what to try."""
    from terrazzo.demo.fleet import DemoFleet
    from terrazzo.demo.passwords import DemoPasswords
    from terrazzo.demo.records import prepare_demo
    from terrazzo.demo.week import DemoWeek
    from terrazzo.ports.tasks import OnFailure
    from terrazzo.times import now_us

    services, started_us = platform.gateway.services, now_us()
    passwords = DemoPasswords.open(platform.config.data_dir)
    entities = platform.metadata.entities
    pins = await prepare_demo(entities, passwords, f"{addresses.websocket or addresses.http}/apiproxy/api")
    fleet = DemoFleet(platform.config.data_dir, addresses.mqtt_port)
    await fleet.start(pins, platform.store, started_us)
    platform.before_stop(fleet.stop)
    week = DemoWeek(
        entities=entities,
        store=platform.store,
        pusher=services.pusher,
        events=services.events,
        started_us=started_us,
    )

    async def bring() -> None:
        if await week.work():
            print("The demo's week of history is there, and what follows from it.", flush=True)

    platform.before_stop(platform.tasks.spawn("demo", bring, OnFailure.RESTART).stop)
    await _greet(platform, addresses)
    await _show_demo(platform, addresses, passwords)


async def _show_demo(platform: Platform, addresses: ListenAddresses, passwords: DemoPasswords) -> None:
    from terrazzo.demo.printed import curl_lines, write_curl_headers
    from terrazzo.demo.site import MISSET, SPARE, USERS

    metadata = platform.metadata
    operator = await metadata.entities.users.by_name("demo-operator")
    assert operator is not None
    headers = write_curl_headers(platform.config.data_dir, metadata.tokens.issue_for(operator))
    print(f"  demo users {', '.join(USERS)}; their passwords are in {passwords.file}")
    print(f"  a terminal for you: client id and user name {SPARE}; its password is there too")
    if sys.stdout.isatty():
        for name in (*USERS, SPARE):
            print(f"             {name} / {passwords.of(name)}")
    print(f"  one terminal, {MISSET}, has a wrong password on purpose: the console says what to do about it")
    print("  a week of the plant's history comes in within the next seconds; a line says when it is there")
    print("\nTry, in another terminal (the token in the file is good for some hours):\n")
    for line in curl_lines(addresses.http, headers, passwords.file):
        print(f"{line}\n")
    sys.stdout.flush()
