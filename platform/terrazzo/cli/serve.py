"""``terrazzo serve``: the platform in the foreground, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from terrazzo.cli.options import ConfigOption, DataOption, read_config
from terrazzo.config.sections import Config, ConfigError

if TYPE_CHECKING:
    from terrazzo.runtime.serve import ListenAddresses, Platform


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo serve``."""
    app.command()(serve)


def serve(
    config: ConfigOption = None,
    data: DataOption = None,
    demo: Annotated[bool, typer.Option("--demo", help="With demo data and a small simulated fleet.")] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    """Serve the platform until SIGTERM or Ctrl-C."""
    level = logging.getLevelNamesMapping().get(log_level.upper())
    if level is None:
        raise typer.BadParameter(f"{log_level!r} is none of debug, info, warning, error", param_hint="--log-level")
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    raise typer.Exit(_run(read_config(config, data), demo=demo))


def _run(config: Config, *, demo: bool) -> int:
    from terrazzo.database.migration import DatabaseUnusable
    from terrazzo.ports.store import StoreUnavailable
    from terrazzo.runtime.process import new_event_loop, run

    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(run(config, started=_start_demo if demo else _greet))
    except (DatabaseUnusable, StoreUnavailable, OSError, ValueError) as error:
        raise ConfigError(str(error)) from error


async def _greet(platform: Platform, addresses: ListenAddresses) -> None:
    """Prints all addresses, and once the first administrator's password."""
    print("Terrazzo is ready.")
    print(f"  gateway    {addresses.http}/apiproxy/api  {addresses.websocket}/apiproxy/api")
    if addresses.tcp:
        print(f"             {addresses.tcp}")
    print(f"  terminals  {'  '.join(addresses.mqtt)}")
    print(f"  data       {platform.config.data_dir.resolve()}")
    admin = platform.metadata.first_admin
    if admin is not None:
        kept = f"  (kept in {admin.file})" if admin.file else ""
        print(f"  login      {admin.username} / {admin.password}{kept}")
    sys.stdout.flush()


async def _start_demo(platform: Platform, addresses: ListenAddresses) -> None:
    """Prints the addresses, adds demo data and a simulated fleet, and prints what to try."""
    from terrazzo.demo import PASSWORD, SPARE, USERS, DemoFleet, curl_lines, prepare_demo, write_curl_headers

    metadata = platform.metadata
    await prepare_demo(metadata.entities)
    fleet = DemoFleet(platform.config.data_dir, addresses.mqtt_port)
    await fleet.start()
    platform.before_stop(fleet.stop)
    await _greet(platform, addresses)
    operator = await metadata.entities.users.by_name("demo-operator")
    assert operator is not None
    headers = write_curl_headers(platform.config.data_dir, metadata.tokens.issue_for(operator))
    print(f"  demo users {', '.join(USERS)} / {PASSWORD}")
    print(f"  a terminal for you: client id and user name {SPARE}, password spare-pin")
    print("\nTry, in another terminal (the token in the file is good for some hours):\n")
    for line in curl_lines(addresses.http, headers):
        print(f"{line}\n")
    sys.stdout.flush()
