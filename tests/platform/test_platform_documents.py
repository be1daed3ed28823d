"""The examples of README.md and docs/*.md work as they stand, with ``terrazzo serve --demo``; what isn't run says why.

What differs from a reader's machine is put in: ports, the data folder, the administrator's password for ``...``.
"""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from demo_week import copy_demo
from migrated import PASSWORD
from running import Platform, wait_for
from support import free_port, require_program
from terrazzo.config.sections import load_config

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {
    "architecture.md": "drawings, which tests/house makes",
    "mapping.md": "tests/mapping/test_mapping_documented.py",
    "tutorial.md": "tests/platform/test_platform_tutorial.py",
}
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    """A fenced block; ``key`` names it in the table: file and how it begins."""

    file: str
    language: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.file}: {self.text.strip()[:28]}"


def examples() -> list[Example]:
    """All blocks but those of files that other tests run, and of ``gateway.md``'s list of all actions, likewise."""
    found = []
    for file in FILES:
        if file.name not in ELSEWHERE:
            text = file.read_text(encoding="utf-8").split("\n## Examples\n")[0]
            found += [Example(file.name, *match.groups()) for match in _BLOCK.finditer(text)]
    return found


EXAMPLES = examples()
NOT_RUN = {
    ("scaling.md", "the log: NATS"): "a drawing",
    ("scaling.md", "max_payload"): "of another program's configuration",
    ("scaling.md", "[stream]"): "keys of several nodes, to be filled in",
    ("scaling.md", "terminals --MQTT--> front f1"): "a drawing of fronts",
    ("scaling.md", "[cluster]"): "keys of a front, to be filled in",
    ("README.md", "make run"): "installs from the registry; .ci/run does both",
    ("README.md", "pip install ."): "installs from the registry",
    ("beside-a-broker.md", "authentication ="): "is EMQX's: tests/api/test_api_broker_questions.py sends what it asks",
    ("beside-a-broker.md", "mqtt.listeners"): "is RabbitMQ's: tests/rabbitmq_server.py starts it with this",
    ("broker.md", "# who names no user"): "no program: tests/broker/test_broker_access_files.py reads such files",
    ("broker.md", "stream {"): "needs nginx with TLS: tests/transports/test_transport_behind_nginx.py",
    ("decoders.md", "[project]"): "installs a package: tests/ingest/decoder_package.py does it",
    ("gateway.md", "const buffer"): "of a browser: tests/api/test_api_columns.py reads the same bytes",
    ("grafana.md", "apiVersion"): "is for Grafana, which is not at hand",
    ("messenger.md", "curl"): "needs a mail server: tests/messenger",
    ("simulators.md", "python -m"): "runs until it is ended: tests/simulators",
    ("troubleshooting.md", "$ terrazzo"): "shows a past: tests/diagnostics/test_diagnostics_reasons.py",
    ("users.md", "# codes by mail"): "needs a mail server: tests/api/test_api_passwords.py",
    ("users.md", "# a second factor"): "needs codes of a second factor: tests/api/test_api_second_factor.py",
}
"""Examples that this test doesn't run, by file and beginning, and why or where else they are."""


def why_not(example: Example) -> str:
    """Why an example is not run; empty where it is."""
    text = example.text.strip()
    return next((why for (file, begin), why in NOT_RUN.items() if file == example.file and text.startswith(begin)), "")


def test_each_example_is_run_or_says_why_not() -> None:
    known = {"sh": True, "python": True, "json": True, "toml": True}
    for example in EXAMPLES:
        is_session = example.text.startswith("> ")
        is_shell = example.language in ("sh", "") and "curl" in example.text
        runs = example.language in known or is_session or is_shell
        assert runs or why_not(example), f"{example.key!r}: run it, or say in NOT_RUN why not"
    assert len({why for each in EXAMPLES if (why := why_not(each))}) == len(NOT_RUN), (
        "some are gone, or begin otherwise"
    )


def of(*languages: str) -> list[Example]:
    return [each for each in EXAMPLES if each.language in languages and not why_not(each)]


@pytest.mark.parametrize("example", of("json"), ids=lambda each: each.key)
def test_json_is_json(example: Example) -> None:
    json.loads(example.text)


@pytest.mark.parametrize("example", of("toml"), ids=lambda each: each.key)
def test_configurations_are_read(example: Example, tmp_path: Path) -> None:
    tomllib.loads(example.text)
    (tmp_path / "terrazzo.toml").write_text(example.text)
    load_config(tmp_path / "terrazzo.toml", {})


@pytest.mark.parametrize("example", of("python"), ids=lambda each: each.key)
def test_python_is_python(example: Example) -> None:
    compile(example.text, example.file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


# Against a platform


class Reader:
    """A person with a platform of the demo, in a folder of their own."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self.platform, self.folder = platform, folder
        self.password = (platform.data / "admin-password").read_text().strip()

    def filled(self, text: str) -> str:
        """An example with what a reader puts in."""
        for host in ("localhost", "127.0.0.1"):
            text = text.replace(f"{host}:31507", f"127.0.0.1:{self.platform.http}")
        text = re.sub(r"-p(ort)? 1883", rf"-p\1 {self.platform.mqtt}", text)
        text = text.replace("terrazzo-data", str(self.platform.data))
        return text.replace('"password": "..."', json.dumps({"password": self.password})[1:-1])

    def run(self, script: str, **environ: str) -> str:
        """Runs a script of the shell, which must succeed; its output."""
        token = self.platform.login(password=self.password).client.session.token
        environment = os.environ | {
            "TOKEN": str(token),
            "TERRAZZO_DATA__DIR": str(self.platform.data),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **environ,
        }
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self, example: Example, **environ: str) -> list[dict[str, object]]:
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


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("documents")
    copy_demo(tmp_path_factory, folder / "data")
    (folder / "data" / "admin-password").write_text(PASSWORD)  # it was configured
    tcp = {"TERRAZZO_TCP__ENABLED": "on", "TERRAZZO_TCP__PORT": str(free_port())}
    with Platform(folder / "data", arguments=("--demo",), env=tcp) as platform:
        (folder / "reader").mkdir()
        wait_for(lambda: "Try, in another terminal" in platform.log.read_text(), "the demo is there", timeout_s=60)
        made = Reader(platform, folder / "reader")
        platform.login(password=made.password)
        yield made


def example(file: str, beginning: str) -> Example:
    (found,) = [each for each in EXAMPLES if each.file == file and each.text.lstrip().startswith(beginning)]
    return found


def test_the_readme(reader: Reader) -> None:
    wait_for(lambda: reader.platform.call("get_last_grid", terminal_id="demo-chiller-1")["data"], "the fleet reports")
    (answer,) = reader.answers(example("README.md", "# log in, and keep the token"))
    assert answer["result"]["data"]
    require_program("mosquitto_pub")
    reader.run(reader.filled(example("README.md", "mosquitto_pub").text))
    (record,) = reader.platform.call("get_last_grid", terminal_id="demo-spare")["data"]
    assert record["payload"] == {"Temperature": 21.5}


def test_the_gateway(reader: Reader) -> None:
    logged_in, read = reader.answers(example("gateway.md", "curl -s http://127.0.0.1:31507/apiproxy/api"))
    assert logged_in["result"]["token"]
    assert read["actionid"] == "1"
    bulk = example("gateway.md", 'curl -s -H "Authorization: Bearer $TOKEN" --data-binary')
    check, export = reader.filled(bulk.text).strip().split("\n")
    reader.run(export)
    assert (reader.folder / "terminals.csv").read_text().count("\n") > 8
    (report,) = reader.answers(bulk._replace(text=check.replace("dry_run=1", "dry_run=1&mode=upsert")))
    assert report["code"] == 200
    exported = reader.run(reader.filled(example("gateway.md", 'curl -s -H "Authorization: Bearer $TOKEN" "http').text))
    assert exported.startswith("time")


def test_the_components(reader: Reader) -> None:
    for uid in ("T-1", "T-2"):
        if uid not in {terminal["uid"] for terminal in reader.platform.client.terminals()}:
            reader.platform.add_terminal(uid, reader.platform.add_config())
    row = ["TEMP", "T", "T", "STA", "$AdapterID-1.T", "x", ""]
    signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    made = reader.platform.call("create_mapping", name="m", script=[row], **signed)
    adding = example("components.md", 'curl -H "Authorization: Bearer $TOKEN" -H')
    reader.answers(adding._replace(text=adding.text.replace('"mapping_id": 1', f'"mapping_id": {made["id"]}')))
    upload, download = reader.filled(example("components.md", 'curl -H "Authorization: Bearer $TOKEN" -F').text).split(
        "\n", 1
    )
    (reader.folder / "manual.pdf").write_bytes(b"%PDF-1.7\n" + b"x" * 100)
    stored = json.loads(reader.run(upload))
    assert stored["code"] == 200, stored
    uid = stored["result"]["uid"]
    reader.run(download.replace("<uid>", uid).replace("manual.pdf", "again.pdf"))
    assert (reader.folder / "again.pdf").read_bytes() == (reader.folder / "manual.pdf").read_bytes()


def test_api_keys(reader: Reader) -> None:
    text = example("users.md", "curl -s http://127.0.0.1:31507/apiproxy/api -H").text
    create, _, use = text.partition("\n# ")
    (created,) = reader.answers(Example("users.md", "sh", create))
    key = created["result"]["key"]
    listed = reader.run(reader.filled(use.split("\n", 1)[1].replace("tzk_Q1v...", str(key))))
    assert listed.startswith("uid,name,")


def test_requests_over_tcp(reader: Reader) -> None:
    """Each line with ``>`` in gateway.md is answered with success."""
    asked = [line[2:] for each in EXAMPLES for line in each.text.splitlines() if line.startswith("> ")]
    assert len(asked) >= 4
    token = str(reader.platform.login(password=reader.password).client.session.token)
    port = int(reader.platform.environment["TERRAZZO_TCP__PORT"])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, connection.makefile("rb") as lines:
        for request in asked:
            connection.sendall(request.replace("<token>", token).encode() + b"\n")
            while (answer := json.loads(lines.readline()))["resp"] == "live":
                pass
            assert answer["code"] == 200, (request, answer)


@pytest.mark.parametrize("beginning", ["from terrazzo.client import Client", "import asyncio"])
def test_the_client(reader: Reader, beginning: str) -> None:
    """The second goes on until it is ended; it has printed something by then."""
    text = example("client.md", beginning).text.replace("http://127.0.0.1:31507", reader.platform.url)
    text = text.replace('password="..."', f"password={reader.password!r}")
    text = text.replace("AsyncClient(username", f"AsyncClient({reader.platform.url!r}, username")
    script = reader.folder / "example.py"
    script.write_text(text)
    process = subprocess.Popen([sys.executable, "-u", str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.strip(), "it ended and said nothing"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_auto_passwords() -> None:
    names: dict[str, object] = {}
    exec(example("terminals.md", "import hashlib, hmac, time").text, names)
    made = names["auto_password"]("pump-7", "4711")  # type: ignore[operator]
    seconds, digits = str(made).split(".")
    assert abs(int(seconds) - time.time()) < 10
    assert re.fullmatch("[0-9a-f]{64}", digits)


def test_signatures_of_webhooks() -> None:
    import hashlib
    import hmac

    names: dict[str, object] = {"hmac": hmac, "hashlib": hashlib, "time": time}
    exec(example("messenger.md", "def is_genuine").text, names)
    at = str(int(time.time()))
    signature = hmac.new(b"secret", at.encode() + b".{}", hashlib.sha256).hexdigest()
    headers = {"X-Terrazzo-Timestamp": at, "X-Terrazzo-Signature": f"sha256={signature}"}
    assert names["is_genuine"](headers, b"{}", b"secret")  # type: ignore[operator]


def test_keys_are_replaced_beside_the_platform(reader: Reader) -> None:
    """Last: all tokens end."""
    said = reader.run(reader.filled(example("security.md", "terrazzo keys rotate").text))
    assert said.strip()
