"""docs/tutorial.md, line by line, in one shell, as a reader types it, with the answers that stand under the commands.

Ports are put in, which are a test's own. The commands that install are run where everything is installed already.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from running import answers, wait_for
from support import free_port, require_program

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(sh serve|sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ANY = "[\\s\\S]*?"


class Step(NamedTuple):
    """Commands, and what they answer; empty where the page shows nothing."""

    kind: str
    commands: str
    shown: str


def read_steps(text: str) -> list[Step]:
    """The page's commands in order, each with the block of text behind it."""
    found: list[Step] = []
    for kind, block in _BLOCK.findall(text):
        if kind == "text":
            found[-1] = found[-1]._replace(shown=block)
        else:
            found.append(Step(kind, block, ""))
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """What a block of answers stands for: its lines, with anything in place of ``...``."""
    return re.compile(_ANY.join(re.escape(part) for part in shown.strip().split("...")))


class Reading:
    """A reader with a folder, a platform in one window and a shell in another."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.http, self.mqtt = folder, free_port(), free_port()
        for name in ("Makefile", "pyproject.toml"):
            (folder / name).symlink_to(ROOT / name)
        (folder / ".venv").mkdir()
        (folder / ".venv" / "bin").symlink_to(Path(sys.prefix) / "bin")
        (folder / ".venv" / ".installed").touch()
        ports = {"TERRAZZO_HTTP__PORT": str(self.http), "TERRAZZO_MQTT__PORT": str(self.mqtt)}
        ports |= {f"TERRAZZO_{name}": str(free_port()) for name in ("WEBSOCKET__PORT", "MQTT__WEBSOCKET_PORT")}
        self.environment = os.environ | ports | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.log, self.errors = folder / "serve.log", folder / "serve.err"
        self.server: subprocess.Popen[bytes] | None = None

    def filled(self, text: str) -> str:
        return text.replace("31507", str(self.http)).replace("1883", str(self.mqtt))

    def serve(self, commands: str) -> str:
        """Leaves the platform running; what it has printed when it is ready."""
        with self.log.open("wb") as output, self.errors.open("wb") as errors:
            command = ["bash", "-c", self.filled(commands).replace("terrazzo serve", "exec terrazzo serve")]
            self.server = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=output, stderr=errors)
        wait_for(self._is_ready, "ready", timeout_s=60)
        return wait_for(lambda: self.log.read_text() if "login" in self.log.read_text() else "", "what it prints")

    def _is_ready(self) -> bool:
        assert self.server is not None
        assert self.server.poll() is None, self.errors.read_text()
        return answers(f"http://127.0.0.1:{self.http}/readyz")

    def run(self, steps: list[Step]) -> list[str]:
        """Types all commands into one shell; what each step printed."""
        mark = "=== next step ==="
        script = "".join(f"{self.filled(step.commands)}\necho '{mark}'\n" for step in steps)
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail"],
            input=script,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
        return done.stdout.split(f"{mark}\n")[:-1]

    def stop(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(20)


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    require_program("curl")
    require_program("make")
    made = Reading(tmp_path)
    yield made
    made.stop()


def test_the_tutorial_line_by_line(reading: Reading) -> None:
    steps = read_steps(TEXT)
    (serving,) = (number for number, step in enumerate(steps) if step.kind == "sh serve")
    reading.run(steps[:serving])
    printed = [reading.serve(steps[serving].commands), *reading.run(steps[serving + 1 :])]
    assert len(printed) == len(steps) - serving > 8
    for step, output in zip(steps[serving:], printed, strict=True):
        assert step.shown, f"the page doesn't say what comes of {step.commands!r}"
        assert pattern(reading.filled(step.shown)).fullmatch(output.strip()), (step.shown, output)


def test_a_wrong_answer_is_noticed() -> None:
    assert pattern('{"code":200,...,"id":1...}').fullmatch('{"code":200,"x":2,"id":1}')
    assert not pattern('{"code":200,...,"id":1...}').fullmatch('{"code":500,"x":2,"id":1}')
