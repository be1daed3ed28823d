"""The unit for systemd, and the files for containers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support import require_program
from terrazzo.config.sections import load_config

PACKAGING = Path(__file__).parents[2] / "packaging"
UNIT = PACKAGING / "systemd" / "terrazzo.service"


def test_systemd_takes_the_unit(tmp_path):
    text = UNIT.read_text().replace("/opt/terrazzo/bin/terrazzo", sys.executable)
    (tmp_path / "terrazzo.service").write_text(text)
    command = [require_program("systemd-analyze"), "verify", str(tmp_path / "terrazzo.service")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_is_hardened():
    command = [require_program("systemd-analyze"), "security", "--offline=true", "--threshold=20", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_dockerfile_has_no_finding():
    program = Path(sys.executable).with_name("hadolint")
    command = [str(program) if program.exists() else require_program("hadolint"), PACKAGING / "docker" / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_image_is_configured_with_keys_that_exist():
    text = (PACKAGING / "docker" / "Dockerfile").read_text()
    given = dict(re.findall(r"(TERRAZZO_\w+__\w+)=(\S+)", text))
    config = load_config(None, given)
    assert (str(config.data_dir), config.http.host) == ("/data", "0.0.0.0")
    exposed = re.search(r"^EXPOSE (.*)$", text, re.M)
    assert exposed is not None
    ports = [config.http.port, config.websocket.port, config.mqtt.port, config.mqtt.websocket_port]
    assert exposed[1].split() == [str(port) for port in ports]
    assert f":{config.http.port}/healthz" in text


def test_the_image_runs_as_nobody_of_the_host():
    text = (PACKAGING / "docker" / "Dockerfile").read_text()
    assert re.search(r"^USER 10001:10001$", text, re.M)
    assert text.count("FROM ") == 2
    assert "HEALTHCHECK" in text


def test_compose_names_the_image_read_only():
    (service,) = yaml.safe_load((PACKAGING / "docker" / "compose.yaml").read_text())["services"].values()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    load_config(None, {name: str(value) for name, value in service["environment"].items()})
    published = {port.rsplit(":", 1)[1].split("#")[0].strip() for port in service["ports"]}
    assert published == {"31507", "31503", "1883", "8083"}


@pytest.mark.parametrize("file", sorted(PACKAGING.glob("ci/*.yml")), ids=lambda file: file.stem)
def test_examples_for_ci_are_yaml(file):
    assert yaml.safe_load(file.read_text())


def test_nothing_is_left_writable():
    assert not [path for path in PACKAGING.rglob("*") if path.is_file() and os.stat(path).st_mode & 0o022]
