"""The command: collects, takes secrets out, and writes one zip of bounded size."""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from terrazzo.cli.options import ConfigOption, DataOption, JsonOption, read_config
from terrazzo.cli.shown import PRIVATE_UMASK, print_json, say
from terrazzo.config.sections import Config, ConfigError

_PATIENCE_S = 20.0
_PART_BYTES = 400_000

HOLDS = {
    "versions.json": "versions of Terrazzo, Python, the system and each package",
    "configuration.json": "the configuration: numbers, switches and choices; of texts only whether one is set",
    "doctor.json": "the report of terrazzo doctor, without the names of records",
    "host.json": "processors, memory, disk, limits of a process",
    "data-folder.json": "files and bytes of each thing in the data folder",
    "database.json": "the database's kind and revision, rows of each table",
    "running/log.json": "the last 500 lines of the log: the program's words and numbers, no other values",
    "running/tasks.json": "long-lived tasks, and how many of each kind the event loop has",
    "running/threads.txt": "where each thread is",
    "running/process.json": "limits, descriptors and memory of the platform's process",
    "running/metrics.txt": "what /metrics says",
}
"""The files of a bundle, and what each holds."""

LEFT_OUT = (
    "keys, passwords, pins, tokens, API keys, certificates' keys, second factors, sealed columns",
    "addresses of webhooks, providers, mail servers, databases and bridges; bodies of providers",
    "records of any kind: terminals, objects, users, events, messages, commands, files",
    "payloads, topics, client ids, user names, addresses of clients",
    "environment variables, and the log of before the process that runs now (journalctl has it)",
)


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo support-bundle``."""
    app.command("support-bundle")(support_bundle)


def support_bundle(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The zip to write; terrazzo-support-<time>.zip without.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Write a zip with what somebody who helps has to know, and no secret; of a platform that runs or a folder."""
    loaded = read_config(config, data)
    os.umask(PRIVATE_UMASK)
    now = datetime.now(UTC)
    path = file or Path(f"terrazzo-support-{now:%Y%m%d-%H%M%S}.zip")
    parts, missing = collect(loaded)
    try:
        _write(path, parts, missing, now)
    except FileExistsError:
        raise ConfigError(f"FILE: {path} is there already; name another one") from None
    except OSError as error:
        raise ConfigError(f"FILE: {path}: {error.strerror}") from None
    told = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "holds": sorted(parts),
        "missing": missing,
        "left_out": list(LEFT_OUT),
    }
    if as_json:
        print_json(told)
    else:
        _say(told)


def collect(config: Config) -> tuple[dict[str, str], dict[str, str]]:
    """The files of a bundle by name, and why others are missing."""
    from terrazzo.cli.support import facts
    from terrazzo.cli.support.secrets_left_out import Scrubber, known_secrets, shown_config
    from terrazzo.runtime.support_answers import cut

    scrubber = Scrubber(known_secrets(config, os.environ))
    parts: dict[str, str] = {}
    missing: dict[str, str] = {}
    sources: dict[str, Callable[[], Any]] = {
        "versions.json": facts.versions,
        "configuration.json": lambda: shown_config(config),
        "doctor.json": lambda: facts.doctor(config),
        "host.json": lambda: facts.host(config),
        "data-folder.json": lambda: facts.folder(config.data_dir),
        "database.json": lambda: asyncio.run(facts.database(config)),
    }
    for name, source in sources.items():
        try:
            parts[name] = json.dumps(source(), indent=1)
        except Exception as error:  # noqa: BLE001 - of what is broken the rest is wanted all the more
            missing[name] = f"failed with {type(error).__name__}"
    _ask_running(config, parts, missing)
    return {name: cut(scrubber.clean(text), most_bytes=_PART_BYTES) for name, text in parts.items()}, missing


def _ask_running(config: Config, parts: dict[str, str], missing: dict[str, str]) -> None:
    from terrazzo.cli.control import NotDone, ask_running

    def keep(line: dict[str, Any]) -> None:
        name = f"running/{line.get('part')}"
        if name in HOLDS and len(parts) < len(HOLDS):
            parts[name] = str(line.get("text"))

    why = "no platform runs on the data folder"
    try:
        if ask_running(config.data_dir, {"do": "support"}, keep, timeout_s=_PATIENCE_S) is not None:
            why = "the platform that runs did not say it"
    except NotDone:
        why = "the platform that runs did not answer"
    missing.update({name: why for name in HOLDS if name not in parts and name not in missing})


def _write(path: Path, parts: dict[str, str], missing: dict[str, str], now: datetime) -> None:
    with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in {"README.txt": _readme(parts, missing, now), **parts}.items():
            bundle.writestr(zipfile.ZipInfo(name, (now.year, now.month, now.day, *now.timetuple()[3:6])), text)


def _readme(parts: dict[str, str], missing: dict[str, str], now: datetime) -> str:
    lines = [f"Terrazzo support bundle, made {now:%Y-%m-%d %H:%M:%S} UTC", "", "It holds:"]
    lines += [f"  {name}: {HOLDS[name]}" for name in parts]
    if missing:
        lines += ["", "Missing:", *(f"  {name}: {why}" for name, why in missing.items())]
    lines += ["", "Left out on purpose:", *(f"  {each}" for each in LEFT_OUT), ""]
    return "\n".join([*lines, "Look through it before you hand it on: it is plain text.", ""])


def _say(told: dict[str, Any]) -> None:
    say(f"{told['file']}: {told['bytes']:,} bytes")
    say("it holds:")
    for name in told["holds"]:
        say(f"  {name:22} {HOLDS[name]}")
    for name, why in told["missing"].items():
        say(f"  without {name}: {why}")
    say("left out on purpose:")
    for each in told["left_out"]:
        say(f"  {each}")
