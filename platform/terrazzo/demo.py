"""Demo data and a small simulated fleet: what ``terrazzo serve --demo`` shows."""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from terrazzo.crypto.key_file import replace_private
from terrazzo.crypto.passwords import verify_password
from terrazzo.database.port import Conditions, Repository, Row
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.metadata.entities import Entities

COMPANY = "Demo Works"
USERS = {"demo-admin": "admin", "demo-operator": "operator", "demo-viewer": "viewer"}
SPARE = "demo-spare"
PASSWORD_FILE = "demo-passwords"
FORMER_PASSWORD = "demo-password"  # of all users, in folders of before there was a file: is replaced
_SECRET_BYTES = 8  # 16 digits: a pin has no more characters
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


class DemoPasswords:
    """Passwords of the demo's users and pins of its terminals: random, in a file of lines ``<name> <password>``."""

    def __init__(self, file: Path, passwords: dict[str, str]) -> None:
        self.file = file
        self._passwords = passwords

    @classmethod
    def open(cls, data_dir: Path) -> DemoPasswords:
        """Reads ``<data>/demo-passwords``; makes it, or the lines that are missing, with mode 0600."""
        file = data_dir.resolve() / PASSWORD_FILE
        lines = file.read_text().splitlines() if file.exists() else []
        known = {name: password for name, _, password in (line.partition(" ") for line in lines) if password}
        names = (*USERS, *(terminal.uid for terminal in TERMINALS), SPARE)
        passwords = {name: known.get(name) or secrets.token_hex(_SECRET_BYTES) for name in names}
        if passwords != known:
            replace_private(file, "".join(f"{name} {password}\n" for name, password in passwords.items()))
        return cls(file, passwords)

    def of(self, name: str) -> str:
        """The password of a user, or the pin of a terminal."""
        return self._passwords[name]


async def prepare_demo(entities: Entities, passwords: DemoPasswords) -> dict[str, str]:
    """Creates the demo's company, users, terminals and objects where they do not exist yet; the terminals' pins.

    Users and terminals that have the passwords which once stood in this file get those of ``passwords``; what somebody
    has set since stays.
    """
    company = await _ensure(entities.companies, SYSTEM, "name", {"name": COMPANY, "description": "Made by --demo"})
    actor = Actor(user_id=1, username="demo", company_id=company["id"], role=Role.ADMIN)
    files = {"lua_file": "http://127.0.0.1/demo.lua", "lua_version": "1.1", "mcu_version": "2.0"}
    config = await _ensure(entities.configurations, actor, "name", {"name": "Demo configuration", **files})
    pins = {}
    for terminal in (*TERMINALS, DemoTerminal(uid=SPARE, type="Other")):
        pin = passwords.of(terminal.uid)
        row = await _ensure(entities.terminals, actor, "uid", _record(terminal, config["uid"], pin))
        if row["pin"] == f"{terminal.uid.removeprefix('demo-')}-pin":
            row = await entities.terminals.update(actor, terminal.uid, {"pin": pin})
        pins[terminal.uid] = row["pin"]
    for name, uids in OBJECTS.items():
        values = {"name": name, "terminal_list": list(uids), "city": "Demo City"}
        await _ensure(entities.objects, actor, "name", values)
    for username, role in USERS.items():
        values = {"username": username, "password": passwords.of(username), "role": role}
        await _ensure(entities.users, actor, "username", values)
        stored = await entities.users.by_name(username)
        if stored is not None and await verify_password(stored["password_hash"], FORMER_PASSWORD):
            await entities.users.update(actor, username, {"password": passwords.of(username)})
    return pins


async def _ensure(repository: Repository, actor: Actor, key: str, values: dict[str, Any]) -> Row:
    found = await repository.page(actor, page_size=1, conditions=Conditions(all_of=[(key, "=", values[key])]))
    return found.rows[0] if found.rows else await repository.create(actor, values)


def _record(terminal: DemoTerminal, config_uid: str, pin: str) -> dict[str, Any]:
    names = {"uid": terminal.uid, "name": terminal.uid.replace("-", " ").title(), "type": terminal.type}
    credentials = {"username": terminal.uid, "pin": pin}
    return {**names, **credentials, "config_id": config_uid, "mode": "pwd", **terminal.record}


class DemoFleet:
    """Runs the demo's simulated terminals in a process of their own, whose output goes to ``<data>/demo-fleet.log``."""

    def __init__(self, data_dir: Path, mqtt_port: int) -> None:
        self._file = data_dir / "demo-fleet.json"
        self._log = data_dir / "demo-fleet.log"
        self._port = mqtt_port
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, pins: Mapping[str, str]) -> None:
        """Starts the simulator; its terminals connect within a second or two. ``pins``: by uid."""
        devices = [_device(terminal, pins[terminal.uid]) for terminal in TERMINALS]
        replace_private(self._file, json.dumps(devices, indent=1))
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


def _device(terminal: DemoTerminal, pin: str) -> dict[str, Any]:
    record = {"uid": terminal.uid, "type": terminal.type, "username": terminal.uid, "pin": pin}
    return {**record, **terminal.record, **terminal.device}


def write_curl_headers(data_dir: Path, token: str) -> Path:
    """Writes the headers for curl's ``-H @file`` (mode 0600), so that the printed lines work as they are; its path."""
    path = data_dir.resolve() / "demo-curl-headers"
    replace_private(path, f"Content-Type: application/json\nAuthorization: Bearer {token}\n")
    return path


def curl_lines(http_address: str, headers: Path, passwords: Path) -> list[str]:
    """Three curl commands to paste into a shell: log in, read records, send a command. They name no secret."""
    password = f"$(sed -n 's/^demo-operator //p' {shlex.quote(str(passwords))})"
    login = {"action": "login", "username": "demo-operator", "password": "PASSWORD"}
    asked = json.dumps(json.dumps(login)).replace("PASSWORD", password)  # JSON within double quotes of the shell
    read = {"action": "get_last_grid_list", "terminal_id": "demo-pwd-1", "topic": ["r"], "items": 3}
    command = {"action": "publish_terminal_command", "terminal_id": "demo-pwd-1", "command": "Diag", "value": ""}
    return [
        f"curl -s {http_address}/apiproxy/api -H 'Content-Type: application/json' -d {asked}",
        _curl(http_address, f"-H @{shlex.quote(str(headers))}", read),
        _curl(http_address, f"-H @{shlex.quote(str(headers))}", command),
    ]


def _curl(http_address: str, headers: str, body: Mapping[str, Any]) -> str:
    return f"curl -s {http_address}/apiproxy/api {headers} -d '{json.dumps(body)}'"
