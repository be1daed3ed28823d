"""The examples of README.md and docs/*.md work as they stand, with ``terrazzo serve --demo``; what isn't run says why.

What differs from a reader's machine is put in: ports, folders, the administrator's password for ``...``.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
import hmac
import inspect
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from document_examples import (
    ELSEWHERE,
    EXAMPLES,
    LEDGER,
    NOT_RUN,
    ROOT,
    Example,
    excuses,
    only,
    running,
)
from document_reader import OWN_PLATFORM, PROGRAMS, Reader

import terrazzo_broker
from certificate_authority import Authority
from demo_week import copy_demo
from migrated import PASSWORD
from running import Platform, ServerProcess, wait_for
from support import free_port, require_program
from terrazzo.config.sections import load_config
from terrazzo.demo.site import MISSET
from terrazzo_broker.standalone import OpenHooks
from terrazzo_simulators.spec import read_specs


@pytest.fixture(autouse=True, scope="module")
def each_example_is_run_or_says_why_not(request: pytest.FixtureRequest) -> Iterator[None]:
    """Once all tests of this file have run. Where some were left out, or one has failed, there is nothing to hold."""
    yield
    config, session = request.config, request.session
    chosen = config.option.keyword or any("::" in argument for argument in config.args)
    all_tests = {item.nodeid for item in session.items if item.path == Path(__file__)}
    if not chosen and all_tests == BEGUN and not session.testsfailed:
        assert LEDGER.faults(EXAMPLES) == []


BEGUN: set[str] = set()
SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
DEMO_ADMIN = "demo-admin"


@pytest.fixture(autouse=True)
def _begun(request: pytest.FixtureRequest) -> None:
    BEGUN.add(request.node.nodeid)


def test_each_excuse_is_about_an_example() -> None:
    assert set(NOT_RUN) == {entry for each in EXAMPLES for entry in excuses(each)}, "some are gone, or begin otherwise"


@pytest.mark.parametrize("why", sorted({*NOT_RUN.values(), *ELSEWHERE.values()}))
def test_what_an_excuse_names_is_there(why: str) -> None:
    for path in re.findall(r"tests/[\w/.]+\w", why):
        assert (ROOT / path).exists(), path


def of(language: str) -> list[Example]:
    return [each for each in EXAMPLES if each.language == language]


@pytest.mark.parametrize("example", of("json"), ids=lambda each: each.key)
def test_json_is_json(example: Example) -> None:
    json.loads(example.text)


@pytest.mark.parametrize("example", [each for each in of("toml") if not excuses(each)], ids=lambda each: each.key)
def test_configurations_are_read(example: Example, tmp_path: Path) -> None:
    with LEDGER.running(example):
        tomllib.loads(example.text)
        (tmp_path / "terrazzo.toml").write_text(example.text)
        load_config(tmp_path / "terrazzo.toml", {})


# Against a platform


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("documents")
    copy_demo(tmp_path_factory, folder / "data")
    (folder / "data" / "admin-password").write_text(PASSWORD)  # it was configured
    (folder / "passphrase").write_text("a passphrase of some length")
    (folder / "passphrase").chmod(0o600)
    authority = Authority(folder / "certificates")
    server = authority.issue("server")
    environment = {
        "TERRAZZO_TCP__ENABLED": "on",
        "TERRAZZO_TCP__PORT": str(free_port()),
        "TERRAZZO_MQTT__TLS_PORT": str(free_port()),
        "TERRAZZO_MQTT__TLS_CERT": str(server.cert),
        "TERRAZZO_MQTT__TLS_KEY": str(server.key),
        "TERRAZZO_BACKUP__PASSPHRASE_FILE": str(folder / "passphrase"),
    }
    (folder / "terrazzo.toml").write_text(only("messenger.md", "[messenger]").text)  # the project of rules.md
    arguments = ("--demo", "--config", str(folder / "terrazzo.toml"))
    with Platform(folder / "data", arguments=arguments, env=environment) as platform:
        (folder / "reader").mkdir()
        wait_for(lambda: "Try, in another terminal" in platform.log.read_text(), "the demo is there", timeout_s=60)
        made = Reader(platform, folder / "reader", authority)
        platform.login(password=made.password)
        yield made


def test_the_readme(reader: Reader) -> None:
    wait_for(lambda: reader.platform.call("get_last_grid", terminal_id="demo-chiller-1")["data"], "the fleet reports")
    with running("README.md", "# log in, and keep the token") as asking:
        (answer,) = reader.answers(asking)
        assert answer["result"]["data"]
    with running("README.md", "mosquitto_pub") as publishing:
        require_program("mosquitto_pub")
        reader.run(reader.filled(publishing.text))
        (record,) = reader.platform.call("get_last_grid", terminal_id="demo-spare", topic="r")["data"]
        assert record["payload"] == {"Temperature": 21.5}


def test_the_gateway(reader: Reader) -> None:
    with running("gateway.md", "curl -s http://127.0.0.1:31507/apiproxy/api") as asking:
        logged_in, read = reader.answers(asking)
        assert logged_in["result"]["token"]
        assert read["actionid"] == "1"
    with running("gateway.md", 'curl -s -H "Authorization: Bearer $TOKEN" --data-binary') as bulk:
        check, export = reader.filled(bulk.text).strip().split("\n")
        reader.run(export)
        assert (reader.folder / "terminals.csv").read_text().count("\n") > 8
        (report,) = reader.answers(bulk._replace(text=check.replace("dry_run=1", "dry_run=1&mode=upsert")))
        assert report["code"] == 200
    with running("gateway.md", 'curl -s -H "Authorization: Bearer $TOKEN" "http') as exporting:
        assert reader.run(reader.filled(exporting.text)).startswith("time")


REQUESTS = [each for each in of("json") if each.text.startswith('{"action"')]


@pytest.mark.parametrize("example", REQUESTS, ids=lambda each: each.key)
def test_requests_in_json(reader: Reader, example: Example) -> None:
    """Each is answered with success; a rule that is made can be started."""
    with LEDGER.running(example):
        token = reader.token_of(DEMO_ADMIN)
        request = json.loads(example.text.replace("<token>", token))
        answer = reader.ask(token, **request)
        assert answer["code"] == 200, answer["info"]
        if request["action"] == "create_rule":
            started = reader.ask(token, action="start_rule", uid=answer["result"]["uid"])
            assert started["code"] == 200, started


@pytest.mark.parametrize(
    ("beginning", "fields"),
    [('{"resp": "get_terminal_item"', {"uid": "pump-7"}), ('{"resp": "get_last_grid"', {"terminal_id": MISSET})],
)
def test_answers_in_json(reader: Reader, beginning: str, fields: dict[str, str]) -> None:
    with running("gateway.md", beginning) as shown:
        answer = json.loads(shown.text)
        asked = reader.ask(reader.token, action=answer["resp"], actionid=answer["actionid"], **fields)
        assert asked == answer


def test_grafana(reader: Reader) -> None:
    """The key may read what Grafana asks for first."""
    with running("grafana.md", "curl") as making:
        (made,) = reader.answers(making, TOKEN=reader.token_of(DEMO_ADMIN))
        query = (
            "curl -s -G localhost:31507/influx/query -d db=mosaic --data-urlencode 'q=SHOW MEASUREMENTS' -u grafana:"
        )
        assert "Chiller 1" in reader.run(reader.filled(query) + made["result"]["key"])


def test_influxql(reader: Reader) -> None:
    with running("influxql.md", "curl") as asking:
        answer = json.loads(reader.run(reader.filled(asking.text)))
        (series,) = answer["results"][0]["series"]
        assert len(series["values"]) >= 24
        assert any(mean is not None for _, mean in series["values"])


def test_payloads_as_arrays(reader: Reader) -> None:
    with running("decoders.md", '{"format": "array"') as payload:
        made = reader.platform.call("create_terminal_config", name="arrays", payload=json.loads(payload.text), **SIGNED)
        shown = reader.platform.call("get_terminal_config_item", uid=made["uid"])
        assert shown["payload"] == json.loads(payload.text)


def test_a_decoder() -> None:
    with running("decoders.md", '"""Frames of a weather station') as decoder:
        names: dict[str, Any] = {}
        exec(decoder.text, names)
        points = names["decode"](b"\x08\x66\x30\x01", ("g", "T-1", "r"))
        assert points == {"Temperature": 21.5, "Humidity": 48, "Rain": True}


def test_a_configuration_is_confirmed(reader: Reader) -> None:
    with running("terminals.md", '{"Version"') as payload:
        publish = only("README.md", "mosquitto_pub").text.replace("demo-spare/r", "demo-spare/p")
        require_program("mosquitto_pub")
        reader.run(reader.filled(publish.replace('{"Temperature": 21.5}', payload.text.strip())))
        (record,) = reader.platform.call("get_last_grid", terminal_id="demo-spare", topic="p")["data"]
        assert record["payload"] == json.loads(payload.text)


def test_provisioning(reader: Reader) -> None:
    """The function gets credentials over TLS, whose authority is put in."""
    with running("terminals.md", "import json, threading") as claim:
        made = reader.platform.call("create_claim_key", name="new ones", prefix="claimed-")
        port = reader.platform.environment["TERRAZZO_MQTT__TLS_PORT"]
        script = claim.text.replace("8883", port) + "\n\nimport sys\nprint(json.dumps(claim(*sys.argv[1:])))\n"
        done = subprocess.run(
            [sys.executable, "-c", script, "localhost", "claimed-1", made["key"]],
            env=os.environ | {"SSL_CERT_FILE": str(reader.authority.ca)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout).keys() >= {"Act", "Username", "Pin", "Mode"}


def test_an_assistant(reader: Reader) -> None:
    """The program that an assistant is told to start introduces itself."""
    with running("assistants.md", '{\n  "mcpServers": {\n    "terrazzo": {\n      "command"') as told:
        server = json.loads(reader.filled(told.text))["mcpServers"]["terrazzo"]
        key = reader.platform.call("create_api_key", name="assistant", role="viewer")["key"]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        done = subprocess.run(
            [shutil.which(server["command"], path=PROGRAMS) or "", *server["args"]],
            input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n",
            env=os.environ | dict.fromkeys(server["env"], key),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "terrazzo", done.stderr


# Programs


def test_backups(reader: Reader) -> None:
    target = reader.folder / "backups"
    filled = {"/mnt/backups": str(target), "DIR": str(reader.platform.data), "NEW": str(reader.folder / "restored")}

    def put_in(text: str) -> str:
        return re.sub("|".join(filled), lambda match: filled[match[0]], text)

    with running("backup.md", "terrazzo backup /mnt/backups") as making:
        reader.run(put_in(making.text))
        assert list((target / "backups").glob("*.json"))
    with running("backup.md", "terrazzo backup verify") as restoring:
        reader.run_and_serve(put_in(restoring.text))


def test_upgrading(reader: Reader) -> None:
    """The way back, from the backup that was made before."""
    target, data = reader.folder / "before-upgrade", reader.platform.data

    def put_in(text: str) -> str:
        text = text.replace("/var/lib/terrazzo-before", str(reader.folder / "terrazzo-before"))
        return text.replace("/srv/backups", str(target)).replace("/var/lib/terrazzo", str(data))

    with running("upgrading.md", "terrazzo backup") as before:
        assert "backup" in reader.run(put_in(before.text))
    (made,) = (target / "backups").glob("*.json")
    with running("upgrading.md", "terrazzo restore") as back:
        reader.run_and_serve(put_in(back.text).replace("ID", made.stem))


def test_monitoring(reader: Reader) -> None:
    """In a folder in place of the machine's; that of the provisioning comes with Grafana."""
    with running("monitoring.md", "install -D") as installing:
        machine = reader.folder / "machine"
        (machine / "etc/grafana/provisioning/dashboards").mkdir(parents=True)
        reader.run(f"cd {ROOT}\n{re.sub('(?<= )(?=/(etc|var)/)', str(machine), installing.text)}")
        there = {str(path.relative_to(machine)) for path in machine.rglob("*") if path.is_file()}
        assert there > {"etc/prometheus/alerts.yml", "etc/grafana/provisioning/dashboards/terrazzo.yml"}
        assert len(there) > 4, "and dashboards"


def test_completion(reader: Reader) -> None:
    with running("cli.md", 'eval "$(terrazzo completion bash)"') as completing:
        folder = reader.folder / ".local/share/bash-completion/completions"
        folder.mkdir(parents=True)
        told = reader.run(completing.text + "complete -p terrazzo\n", HOME=str(reader.folder))
        assert told.strip().endswith(" terrazzo")
        assert "complete" in (folder / "terrazzo").read_text()


def test_a_broker_alone_and_a_fleet(tmp_path: Path) -> None:
    """Both run until they are ended, and end in order."""
    port = free_port()
    with running("broker.md", "python -m terrazzo_broker") as broker, running("simulators.md", "python -m") as fleet:
        started = ["bash", "-c", f"exec {broker.text.strip()} --port {port}"]
        with ServerProcess(started, log=tmp_path / "broker.log", env={"PATH": PROGRAMS}) as serving:
            serving.wait_ready(lambda: f"listening on 127.0.0.1:{port}" in serving.log.read_text())
            simulating = ["bash", "-c", f"exec {fleet.text.strip().replace('1883', str(port))}"]
            with ServerProcess(simulating, log=tmp_path / "fleet.log", env={"PATH": PROGRAMS}) as simulated:
                simulated.wait_ready(lambda: "connected 100/100" in simulated.log.read_text(), timeout_s=60)
                assert simulated.stop() == 0
            assert serving.stop() == 0


def test_a_file_of_terminals(tmp_path: Path) -> None:
    with running("simulators.md", '[\n  {"uid": "pump-1"') as terminals:
        (tmp_path / "terminals.json").write_text(terminals.text)
        assert [each.uid for each in read_specs(tmp_path / "terminals.json")] == ["pump-1", "hall-2"]


def test_a_fleet_in_a_test(reader: Reader, tmp_path: Path) -> None:
    """The test of the page passes, with a platform of the demo as ``my_platform``."""
    platform = reader.platform
    with running("simulators.md", "def test_a_setpoint") as test:
        pump = {"username": "pump", "pin": "4711", "dixie": 1}
        platform.add_terminal("pump", platform.add_config("for pumps"), **pump)
        row = ["SETPOINT", "Setpoint", "设定", "OBJ", "$AdapterID-1.SETPOINT", "5"]
        control = platform.call("create_control", name="setpoint", script=[row])
        reading = ["TEMP", "Temperature", "温度", "STA", "$AdapterID-1.TEMP", ""]
        mapping = platform.call("create_mapping", name="temperature", script=[reading], **SIGNED)
        names = {"mapping_id": mapping["id"], "control_id": control["id"], "terminal_list": ["pump"]}
        made = platform.call("create_object", name="A pump", **names)
        (tmp_path / "conftest.py").write_text(
            OWN_PLATFORM.format(mqtt=platform.mqtt, url=platform.url, password=reader.password, object_id=made["id"])
        )
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_pump.py").write_text(test.text)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_pump.py")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout[-3_000:]


def test_a_broker_in_a_program(tmp_path: Path) -> None:
    """Line by line, with addresses and files of the test's own; it listens on five ports meanwhile."""
    with running("broker.md", "broker = Broker(") as program:
        authority = Authority(tmp_path)
        pair = authority.issue("server")
        for name, file in (("server.pem", pair.cert), ("server.key", pair.key), ("clients.pem", authority.ca)):
            (tmp_path / "own").mkdir(exist_ok=True)
            shutil.copy(file, tmp_path / "own" / name)
        text = re.sub(r'"(\w+)\.(pem|key)"', rf'"{tmp_path}/own/\1.\2"', program.text)
        text = re.sub(r'"(0\.0\.0\.0|10\.0\.0\.5)", \d+', '"127.0.0.1", 0', text)
        text = text.replace("/run/broker.sock", str(tmp_path / "broker.sock"))
        text = text.replace("await broker.close", "seen.update(is_socket=is_socket())\nawait broker.close")
        names = {"hooks": OpenHooks(anonymous=True), "seen": {}, "is_socket": (tmp_path / "broker.sock").is_socket}
        names |= {name: getattr(terrazzo_broker, name) for name in ("Broker", "BrokerSettings", "TlsFiles")}
        code = compile(text, "broker.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        assert code.co_flags & inspect.CO_COROUTINE
        asyncio.run(eval(code, names))
        assert names["seen"] == {"is_socket": True}
        assert text.count("127.0.0.1") == 4


# Components, keys, clients


def test_the_components(reader: Reader) -> None:
    for uid in ("T-1", "T-2"):
        if uid not in {terminal["uid"] for terminal in reader.platform.client.terminals()}:
            reader.platform.add_terminal(uid, reader.platform.add_config(f"for {uid}"))
    row = ["TEMP", "T", "T", "STA", "$AdapterID-1.T", "x", ""]
    made = reader.platform.call("create_mapping", name="m", script=[row], **SIGNED)
    with running("components.md", 'curl -H "Authorization: Bearer $TOKEN" -H') as adding:
        reader.answers(adding._replace(text=adding.text.replace('"mapping_id": 1', f'"mapping_id": {made["id"]}')))
    with running("components.md", 'curl -H "Authorization: Bearer $TOKEN" -F') as files:
        upload, download = reader.filled(files.text).split("\n", 1)
        (reader.folder / "manual.pdf").write_bytes(b"%PDF-1.7\n" + b"x" * 100)
        stored = json.loads(reader.run(upload))
        assert stored["code"] == 200, stored
        uid = stored["result"]["uid"]
        reader.run(download.replace("<uid>", uid).replace("manual.pdf", "again.pdf"))
        assert (reader.folder / "again.pdf").read_bytes() == (reader.folder / "manual.pdf").read_bytes()


def test_api_keys(reader: Reader) -> None:
    with running("users.md", "curl -s http://127.0.0.1:31507/apiproxy/api -H") as example:
        create, _, use = example.text.partition("\n# ")
        (created,) = reader.answers(example._replace(text=create))
        key = created["result"]["key"]
        listed = reader.run(reader.filled(use.split("\n", 1)[1].replace("tzk_Q1v...", str(key))))
        assert listed.startswith("uid,name,")


@pytest.mark.parametrize(
    "example", [each for each in EXAMPLES if each.text.startswith("> ")], ids=lambda each: each.key
)
def test_requests_over_tcp(reader: Reader, example: Example) -> None:
    """Each line with ``>`` is answered with success, in the form of the line with ``<`` below it."""
    port = int(reader.platform.environment["TERRAZZO_TCP__PORT"])
    with (
        LEDGER.running(example),
        socket.create_connection(("127.0.0.1", port), timeout=20) as connection,
        connection.makefile("rb") as lines,
    ):
        login = json.dumps({"action": "ping", "Authorization": f"Bearer {reader.token}"})
        asked = [line[2:].replace("<token>", reader.token) for line in example.text.splitlines() if line[0] == ">"]
        assert len(asked) == 2
        for request in [login, *asked]:
            connection.sendall(request.encode() + b"\n")
            while (answer := json.loads(lines.readline()))["resp"] == "live":
                pass
            assert answer["code"] == 200, (request, answer)


@pytest.mark.parametrize("beginning", ["from terrazzo.client import Client", "import asyncio"])
def test_the_client(reader: Reader, beginning: str) -> None:
    """The first ends, and the second goes on until it is ended; both have printed something by then."""
    with running("client.md", beginning) as example:
        text = example.text.replace("http://127.0.0.1:31507", reader.platform.url)
        text = text.replace('password="..."', f"password={reader.password!r}")
        text = text.replace("AsyncClient(username", f"AsyncClient({reader.platform.url!r}, username")
        script = reader.folder / "example.py"
        script.write_text(text)
        process = subprocess.Popen([sys.executable, "-u", str(script)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.strip(), "it ended and said nothing"
            if beginning != "import asyncio":
                process.stdout.read()
                assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def test_auto_passwords() -> None:
    names: dict[str, Any] = {}
    with running("terminals.md", "import hashlib, hmac, time") as example:
        exec(example.text, names)
        seconds, digits = names["auto_password"]("pump-7", "4711").split(".")
        assert abs(int(seconds) - time.time()) < 10
        assert re.fullmatch("[0-9a-f]{64}", digits)


def test_signatures_of_webhooks() -> None:
    names: dict[str, Any] = {"hmac": hmac, "hashlib": hashlib, "time": time}
    with running("messenger.md", "def is_genuine") as example:
        exec(example.text, names)
        at = str(int(time.time()))
        signature = hmac.new(b"secret", at.encode() + b".{}", hashlib.sha256).hexdigest()
        headers = {"X-Terrazzo-Timestamp": at, "X-Terrazzo-Signature": f"sha256={signature}"}
        assert names["is_genuine"](headers, b"{}", b"secret")
        assert not names["is_genuine"](headers, b"{ }", b"secret")


def test_keys_are_replaced_beside_the_platform(reader: Reader) -> None:
    """All tokens end; each test logs in anew."""
    with running("security.md", "terrazzo keys rotate") as rotating:
        assert reader.run(reader.filled(rotating.text)).strip()
