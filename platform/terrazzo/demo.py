"""Demo data and a small simulated fleet: what ``terrazzo serve --demo`` shows."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from terrazzo.crypto.key_file import write_private
from terrazzo.database.port import Conditions, Repository, Row
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.metadata.entities import Entities

COMPANY = "Demo Works"
USERS = {"demo-admin": "admin", "demo-operator": "operator", "demo-viewer": "viewer"}
PASSWORD = "demo-password"
SPARE = "demo-spare"
_STOP_S = 5.0


class DemoTerminal(msgspec.Struct, frozen=True, kw_only=True):
    """One terminal of the demo: fields of its record, and options (``device``) of its simulation."""

    uid: str
    type: str
    record: dict[str, Any] = {}
    device: dict[str, Any] = {}


TERMINALS = (
    DemoTerminal(uid="demo-pwd-1", type="Adapter-II"),
    DemoTerminal(uid="demo-pwd-2", type="Adapter-III", device={"protocol": "3.1.1"}),
    DemoTerminal(uid="demo-pwd-3", type="Adapter-X", device={"format": "msgpack"}),
    DemoTerminal(uid="demo-auto-1", type="Adapter-II", record={"mode": "auto"}),
    DemoTerminal(uid="demo-auto-2", type="Adapter-X", record={"mode": "auto"}, device={"protocol": "3.1.1"}),
    DemoTerminal(uid="demo-scram-1", type="Adapter-III", record={"dixie": 1}),
    DemoTerminal(uid="demo-scram-256", type="Adapter-X", record={"dixie": 1}, device={"scram": "SCRAM-SHA-256"}),
    DemoTerminal(uid="demo-sealed-1", type="Adapter-III", record={"encryption": 1}),
)
OBJECTS = {
    "Chiller plant": ("demo-pwd-1", "demo-pwd-2", "demo-auto-1"),
    "Compressor house": ("demo-pwd-3", "demo-auto-2", "demo-scram-1"),
    "Metering": ("demo-scram-256", "demo-sealed-1"),
}


async def prepare_demo(entities: Entities) -> None:
    """Creates the demo's company, users, terminals and objects where they do not exist yet."""
    company = await _ensure(entities.companies, SYSTEM, "name", {"name": COMPANY, "description": "Made by --demo"})
    actor = Actor(user_id=1, username="demo", company_id=company["id"], role=Role.ADMIN)
    files = {"lua_file": "http://127.0.0.1/demo.lua", "lua_version": "1.1", "mcu_version": "2.0"}
    config = await _ensure(entities.configurations, actor, "name", {"name": "Demo configuration", **files})
    for terminal in (*TERMINALS, DemoTerminal(uid=SPARE, type="Other")):
        await _ensure(entities.terminals, actor, "uid", _record(terminal, config["uid"]))
    for name, uids in OBJECTS.items():
        values = {"name": name, "terminal_list": list(uids), "city": "Demo City"}
        await _ensure(entities.objects, actor, "name", values)
    for username, role in USERS.items():
        await _ensure(entities.users, actor, "username", {"username": username, "password": PASSWORD, "role": role})


async def _ensure(repository: Repository, actor: Actor, key: str, values: dict[str, Any]) -> Row:
    found = await repository.page(actor, page_size=1, conditions=Conditions(all_of=[(key, "=", values[key])]))
    return found.rows[0] if found.rows else await repository.create(actor, values)


def _record(terminal: DemoTerminal, config_uid: str) -> dict[str, Any]:
    names = {"uid": terminal.uid, "name": terminal.uid.replace("-", " ").title(), "type": terminal.type}
    return {**names, **_credentials(terminal.uid), "config_id": config_uid, "mode": "pwd", **terminal.record}


def _credentials(uid: str) -> dict[str, str]:
    return {"username": uid, "pin": f"{uid.removeprefix('demo-')}-pin"}


class DemoFleet:
    """Runs the demo's simulated terminals in a process of their own, whose output goes to ``<data>/demo-fleet.log``."""

    def __init__(self, data_dir: Path, mqtt_port: int) -> None:
        self._file = data_dir / "demo-fleet.json"
        self._log = data_dir / "demo-fleet.log"
        self._port = mqtt_port
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the simulator; its terminals connect within a second or two."""
        self._file.unlink(missing_ok=True)
        write_private(self._file, json.dumps([_device(terminal) for terminal in TERMINALS], indent=1))
        options = ["--terminals", str(self._file), "--port", str(self._port), "--interval", "2"]
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "terrazzo_simulators", "run", *options, stdout=log, stderr=log
            )

    async def stop(self) -> None:
        """Ends the simulator, after five seconds by force."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()


def _device(terminal: DemoTerminal) -> dict[str, Any]:
    record = {"uid": terminal.uid, "type": terminal.type, **_credentials(terminal.uid)}
    return {**record, **terminal.record, **terminal.device}


def write_curl_headers(data_dir: Path, token: str) -> Path:
    """Writes the headers for curl's ``-H @file`` (mode 0600), so that the printed lines work as they are; its path."""
    path = data_dir.resolve() / "demo-curl-headers"
    path.unlink(missing_ok=True)
    write_private(path, f"Content-Type: application/json\nAuthorization: Bearer {token}\n")
    return path


def curl_lines(http_address: str, headers: Path) -> list[str]:
    """Three curl commands to paste into a shell: log in, read records, send a command."""
    login = {"action": "login", "username": "demo-operator", "password": PASSWORD}
    read = {"action": "get_last_grid_list", "terminal_id": "demo-pwd-1", "topic": ["r"], "items": 3}
    command = {"action": "publish_terminal_command", "terminal_id": "demo-pwd-1", "command": "Diag", "value": ""}
    return [
        _curl(http_address, "-H 'Content-Type: application/json'", login),
        _curl(http_address, f"-H @{shlex.quote(str(headers))}", read),
        _curl(http_address, f"-H @{shlex.quote(str(headers))}", command),
    ]


def _curl(http_address: str, headers: str, body: Mapping[str, Any]) -> str:
    return f"curl -s {http_address}/apiproxy/api {headers} -d '{json.dumps(body)}'"
