"""A person who tries the documents' examples beside a platform of the demo."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from document_examples import Example

from certificate_authority import Authority
from running import Platform, ServerProcess, answers
from support import free_port

PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
OWN_PLATFORM = """
import pytest
from terrazzo.client import Client


class Mine:
    host, mqtt_port = "127.0.0.1", {mqtt}

    def __init__(self):
        self.client = Client({url!r}, username="admin", password={password!r})

    def latest(self, uid):
        return self.client.last_grid(uid, topic="r")["payload"]

    def send_command(self, uid, code, value):
        self.client.call("publish_object_command", object_id={object_id}, command=code, value=value)


@pytest.fixture
def my_platform():
    return Mine()
"""
"""What the page of simulators calls one's own platform."""


class Reader:
    """A person with a platform of the demo, in a folder of their own."""

    def __init__(self, platform: Platform, folder: Path, authority: Authority) -> None:
        self.platform, self.folder, self.authority = platform, folder, authority
        self.password = (platform.data / "admin-password").read_text().strip()

    @property
    def token(self) -> str:
        """A token of the administrator's, new at each call."""
        return str(self.platform.login(password=self.password).client.session.token)

    def token_of(self, name: str) -> str:
        """A token of one of the demo's users, whose passwords are in a file."""
        passwords = dict(line.split() for line in (self.platform.data / "demo-passwords").read_text().splitlines())
        return str(self.platform.call("login", username=name, password=passwords[name])["token"])

    def ask(self, token: str, **request: Any) -> dict[str, Any]:
        """The envelope that the gateway answers a request with."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        url = f"{self.platform.url}/apiproxy/api"
        asked = urllib.request.Request(url, json.dumps(request).encode(), headers)
        with urllib.request.urlopen(asked, timeout=20) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def filled(self, text: str) -> str:
        """An example with what a reader puts in."""
        for host in ("localhost", "127.0.0.1"):
            text = text.replace(f"{host}:31507", f"127.0.0.1:{self.platform.http}")
        text = re.sub(r"-p(ort)? 1883", rf"-p\1 {self.platform.mqtt}", text)
        text = text.replace("terrazzo-data", str(self.platform.data))
        return text.replace('"password": "..."', json.dumps({"password": self.password})[1:-1])

    def run(self, script: str, **environ: str) -> str:
        """Runs a script of the shell, which must succeed; its output."""
        environment = os.environ | self.platform.environment  # and so the ports, for doctor
        environment |= {"TOKEN": self.token, "TERRAZZO_DATA__DIR": str(self.platform.data), "PATH": PROGRAMS}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=environment | environ,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
        return done.stdout

    def run_and_serve(self, script: str) -> None:
        """Runs a script whose last line serves, on ports of its own; ends what it serves once it is ready."""
        before, serve, options = script.strip().rpartition("terrazzo serve")
        assert serve
        assert "\n" not in options
        self.run(before)
        names = ("HTTP__PORT", "MQTT__PORT", "WEBSOCKET__PORT", "MQTT__WEBSOCKET_PORT")
        ports = {f"TERRAZZO_{name}": str(free_port()) for name in names}
        command = ["bash", "-c", f"exec terrazzo serve{options}"]
        with ServerProcess(command, log=self.folder / "serve.log", env={**ports, "PATH": PROGRAMS}) as server:
            server.wait_ready(lambda: answers(f"http://127.0.0.1:{ports['TERRAZZO_HTTP__PORT']}/readyz"), timeout_s=60)
            assert server.stop() == 0

    def answers(self, example: Example, **environ: str) -> list[dict[str, Any]]:
        """What the platform answered, envelope by envelope; each is a success."""
        output, found, decoder = self.run(self.filled(example.text), **environ), [], json.JSONDecoder()
        at = 0
        while (at := output.find('{"', at)) >= 0:
            try:
                answer, end = decoder.raw_decode(output, at)
            except ValueError:
                break
            found.append(answer)
            at = end
        assert [each for each in found if each.get("code", 200) != 200] == []
        return found
