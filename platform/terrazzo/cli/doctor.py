"""``terrazzo doctor``: shows what keeps the platform from running, and what to do about it."""

from __future__ import annotations

import typer

from terrazzo.cli.checks import examine
from terrazzo.cli.finding import Finding, Level
from terrazzo.cli.options import (
    ConfigOption,
    DataOption,
    HttpPortOption,
    JsonOption,
    MqttPortOption,
    RoleOption,
    read_config,
)
from terrazzo.cli.shown import cell, print_json
from terrazzo.config.sections import ConfigError

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo doctor``."""
    app.command("doctor")(doctor)


def doctor(
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
    http_port: HttpPortOption = None,
    mqtt_port: MqttPortOption = None,
    role: RoleOption = "",
) -> None:
    """Check configuration, ports, data folder, packages, database and store; exit with 1 when something fails."""
    findings = _examine(config, data, http_port, mqtt_port, role)
    if as_json:
        print_json([{**each._asdict(), "level": each.level.value} for each in findings])
    else:
        _print_table(findings)
    if any(finding.level is Level.FAIL for finding in findings):
        raise typer.Exit(1)


def _examine(
    config: ConfigOption, data: DataOption, http_port: HttpPortOption, mqtt_port: MqttPortOption, role: RoleOption
) -> list[Finding]:
    try:
        loaded = read_config(config, data).with_ports(http=http_port, mqtt=mqtt_port)
        loaded = loaded.with_role(role) if role else loaded
    except ConfigError as error:
        return [Finding(Level.FAIL, "configuration", str(error), "correct it, then run this again for the rest")]
    source = str(config) if config is not None else "defaults and environment"
    return [Finding(Level.OK, "configuration", source), *examine(loaded)]


def _print_table(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "part", "found", "what to do", show_lines=False)
    for level, part, found, advice in findings:
        table.add_row(cell(level.value, _STYLES[level]), cell(part), cell(found), cell(advice))
    Console().print(table)
