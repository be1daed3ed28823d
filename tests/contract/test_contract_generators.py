"""Clients that others' generators make of ``/openapi.json``: each action by name, types that hold, and they work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from length import IS_LONG, rounds
from mqttjs import SCRIPTS, installed
from running import Platform, wait_for
from support import require_program
from terrazzo.api.openapi.document import GATEWAY_PATH
from terrazzo.api.operations.table import TABLE

ACTIONS = [operation.name for operation in TABLE]
CHECK_S = rounds(170, 900)  # for the types of a client
USERNAME, PASSWORD = "chart-reader", "a long enough password"
READ_CHART = """
import sys

from made.api.actions import get_mosaic_chart, login
from made.client import AuthenticatedClient, Client
from made.models import GatewayFailure, GetMosaicChartFields, LoginFields

url, username, password, object_id = sys.argv[1:]
logged_in = login.sync(client=Client(url), body=LoginFields(username=username, password=password))
assert logged_in is not None and not isinstance(logged_in, GatewayFailure), logged_in
wanted = GetMosaicChartFields(
    object_id=object_id, keys=["TEMP"], start_time="2020-01-01T00:00:00Z", end_time="2100-01-01T00:00:00Z"
)
chart = get_mosaic_chart.sync(client=AuthenticatedClient(url, logged_in.result.token), body=wanted)
assert chart is not None and not isinstance(chart, GatewayFailure), chart
print(chart.result.to_dict())
"""
MYPY = """
[mypy]
strict = true
[mypy-made.*]
# casts that it doesn't need, whatever the document says
disable_error_code = redundant-cast
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with an object that has a variable."""
    with Platform(tmp_path_factory.mktemp("generators") / "data") as running:
        running.login()
        running.add_terminal("gauge-1", running.add_config())
        row = ["TEMP", "T", "T", "STA", "$AdapterID-1.t", ""]
        signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        mapping = running.call("create_mapping", name="m", script=[row], **signed)
        running.call("create_object", name="Gauge", mapping_id=mapping["id"], terminal_list=["gauge-1"])
        running.call("create_user", username=USERNAME, password=PASSWORD, role="viewer")
        send(running)
        yield running


def send(running: Platform) -> None:
    import paho.mqtt.client as mqtt

    pin = running.call("get_terminal_item", uid="gauge-1")
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="gauge-1")
    client.username_pw_set(pin["username"], pin["pin"])
    client.connect("127.0.0.1", running.mqtt)
    client.loop_start()
    client.publish("g/gauge-1/r", json.dumps({"t": 21.5}), qos=1).wait_for_publish(20)
    client.disconnect()
    client.loop_stop()
    wait_for(lambda: running.call("get_last_mosaic", object_id="1", keys=["TEMP"])["data"], "the variable")


def run(*command: str | Path, cwd: Path, timeout_s: float = 170) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, (done.stdout[-3_000:], done.stderr[-3_000:])
    return done.stdout


def document(platform: Platform, folder: Path) -> Path:
    file = folder / "openapi.json"
    with urllib.request.urlopen(f"{platform.url}/openapi.json", timeout=20) as answer:
        file.write_bytes(answer.read())
    return file


def part_of(file: Path, actions: set[str]) -> None:
    """Leaves in a document only some actions, and what they refer to."""
    whole = json.loads(file.read_bytes())
    whole["paths"] = {path: each for path, each in whole["paths"].items() if path.rpartition("/")[2] in actions}
    kinds, texts = whole["components"], [json.dumps(whole["paths"])]
    kept: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    for text in texts:
        for kind, name in re.findall(r'"#/components/(\w+)/([^"]+)"', text):
            if name not in kept[kind]:
                kept[kind][name] = kinds[kind][name]
                texts.append(json.dumps(kinds[kind][name]))
    kept["securitySchemes"] = kinds["securitySchemes"]
    file.write_text(json.dumps({**whole, "components": kept}))


def generate(source: Path, folder: Path) -> set[str]:
    """Makes the package ``made`` in a folder; its actions."""
    (folder / "config.yaml").write_text("post_hooks: []\n")
    given = ["--path", source, "--meta", "none", "--output-path", folder / "made", "--config", folder / "config.yaml"]
    said = run(Path(sys.executable).with_name("openapi-python-client"), "generate", *given, cwd=folder)
    missing = [line for line in said.splitlines() if "WARNING" in line and "/bulk/" not in line]
    assert missing == [], "files of other forms than JSON, in bulk, are all that it can't make"
    return {path.stem for path in (folder / "made" / "api" / "actions").glob("*.py")}


def test_a_python_client_has_each_action(platform: Platform, tmp_path: Path) -> None:
    assert set(ACTIONS) <= generate(document(platform, tmp_path), tmp_path)


@pytest.mark.timeout(CHECK_S + 180)
def test_a_python_client(platform: Platform, tmp_path: Path) -> None:
    """Of two actions, or of all in long runs: types of a whole client take a minute to check, and are made alike."""
    source = document(platform, tmp_path)
    if not IS_LONG:
        part_of(source, {"login", "get_mosaic_chart"})
    assert set(ACTIONS) <= generate(source, tmp_path) or not IS_LONG
    (tmp_path / "read_chart.py").write_text(READ_CHART)
    (tmp_path / "mypy.ini").write_text(MYPY)
    check = ("-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "/dev/null")  # nobody checks it again
    checked = run(sys.executable, *check, "read_chart.py", "made", cwd=tmp_path, timeout_s=CHECK_S)
    made = len(list((tmp_path / "made").rglob("*.py")))
    assert f"no issues found in {made + 1} source files" in checked, "what read_chart.py doesn't import, too"
    read = run(sys.executable, "read_chart.py", platform.url, USERNAME, PASSWORD, "1", cwd=tmp_path)
    assert "21.5" in read


def test_a_typescript_client(platform: Platform, tmp_path: Path) -> None:
    node = require_program("node")
    folder = SCRIPTS / "generators"
    modules = installed(folder / "package.json", "generators") / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    for name in ("package.json", "tsconfig.json", "read_chart.ts"):
        shutil.copy(folder / name, tmp_path)
    source = document(platform, tmp_path)
    cli = modules / "openapi-typescript" / "bin" / "cli.js"
    run(node, cli, source, "-o", "api.d.ts", "--default-non-nullable", "false", cwd=tmp_path)
    types = (tmp_path / "api.d.ts").read_text()
    assert [action for action in ACTIONS if f'"{GATEWAY_PATH}/{action}": {{' not in types] == []
    run(node, modules / "typescript" / "bin" / "tsc", "--project", tmp_path, cwd=tmp_path)
    read = json.loads(run(node, "read_chart.js", platform.url, USERNAME, PASSWORD, "1", cwd=tmp_path))
    assert read["TEMP"]["values"] == [21.5]
