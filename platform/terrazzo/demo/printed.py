"""What ``--demo`` prints to try, and the file of headers that the printed lines name."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from terrazzo.crypto.key_file import replace_private

SHOWN_TERMINAL = "demo-chiller-1"


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
    read = {"action": "get_last_grid_list", "terminal_id": SHOWN_TERMINAL, "topic": ["r"], "items": 3}
    command = {"action": "publish_terminal_command", "terminal_id": SHOWN_TERMINAL, "command": "Diag", "value": ""}
    return [
        f"curl -s {http_address}/apiproxy/api -H 'Content-Type: application/json' -d {asked}",
        _curl(http_address, f"-H @{shlex.quote(str(headers))}", read),
        _curl(http_address, f"-H @{shlex.quote(str(headers))}", command),
    ]


def _curl(http_address: str, headers: str, body: Mapping[str, Any]) -> str:
    return f"curl -s {http_address}/apiproxy/api {headers} -d '{json.dumps(body)}'"
