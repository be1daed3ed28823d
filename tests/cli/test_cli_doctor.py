"""``terrazzo doctor`` finds what is wrong, says what to do, and changes nothing."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from certificate_authority import Authority
from loaded_process import run_loaded_text
from support import free_port
from terrazzo.access.users import ensure_admin
from terrazzo.cli import checks, running
from terrazzo.cli.checks import (
    MODULES,
    check_bridges,
    check_certificates_in_use,
    check_decoders,
    check_dependencies,
    check_metrics,
    check_origins,
    check_permissions,
    examine,
)
from terrazzo.cli.doctor import _print_table
from terrazzo.cli.finding import Finding, Level
from terrazzo.cli.start_checks import (
    check_bridge_files,
    check_certificates,
    check_data_dir,
    check_disk,
    check_listeners,
    listeners,
)
from terrazzo.config.sections import Config, load_config
from terrazzo.crypto.secrets import KEY_FILE, OLD_KEY_FILE, Secrets
from terrazzo.database.database import Database
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.metadata.definitions.registry import MAPPING, STATISTICS, TERMINAL
from terrazzo.metadata.entities import Entities

ROOT = Path(__file__).parents[2]


def make_config(data: Path, **environ: str) -> Config:
    ports = {f"TERRAZZO_{name}": str(free_port()) for name in ("HTTP__PORT", "WEBSOCKET__PORT", "MQTT__PORT")}
    ports["TERRAZZO_MQTT__WEBSOCKET_PORT"] = "off"
    return load_config(None, ports | {"TERRAZZO_DATA__DIR": str(data)} | environ)


def of(findings: list[Finding] | Iterator[Finding], part: str) -> Finding:
    return next(finding for finding in findings if finding.part == part)


async def fill(data: Path) -> None:
    """A platform's data after its first start, with a terminal."""
    database = await Database.open("", data_dir=data)
    entities = Entities.open(database, Registry(), Secrets.open(data))
    await ensure_admin(entities, data_dir=data)
    config = await entities.configurations.create(SYSTEM, {"name": "c"})
    values = {"uid": "G1", "name": "G1", "type": "Other", "mode": "pwd", "username": "u", "pin": "a-long-pin"}
    await entities.terminals.create(SYSTEM, values | {"config_id": config["uid"]})
    await database.close()


@contextmanager
def serving(body: bytes, **headers: str) -> Iterator[int]:
    """An HTTP server that answers everything with this body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_fresh_machine_is_fine_and_stays_untouched(tmp_path: Path) -> None:
    data = tmp_path / "data"
    findings = list(examine(make_config(data)))
    assert [finding for finding in findings if finding.level is Level.FAIL] == []
    assert not data.exists()


def test_filled_data_folder_is_fine(tmp_path: Path) -> None:
    data = tmp_path / "data"
    asyncio.run(fill(data))
    findings = list(examine(make_config(data)))
    machine = ("disk", "descriptors", "backup")  # what this machine has of them; nobody has backed it up
    assert [finding for finding in findings if finding.level is not Level.OK and finding.part not in machine] == []
    assert of(findings, "database").found == "reachable and up to date"
    assert of(findings, "secrets").found == "the key opens the stored pins"


def test_lost_or_wrong_secrets_key_fails(tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path))
    key = tmp_path / KEY_FILE
    key.write_text("00" * 32)
    assert of(examine(make_config(tmp_path)), "secrets").level is Level.FAIL
    key.unlink()
    lost = of(examine(make_config(tmp_path)), "secrets")
    assert lost.level is Level.FAIL
    assert "restore" in lost.advice
    assert not key.exists()


def test_database_of_nobody_or_elsewhere_fails(tmp_path: Path) -> None:
    (tmp_path / "terrazzo.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    assert of(examine(make_config(tmp_path)), "database").level is Level.FAIL
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    gone = of(examine(make_config(tmp_path / "other", TERRAZZO_DATABASE__URL=url)), "database")
    assert (gone.level, "start the database server" in gone.advice) == (Level.FAIL, True)


def test_taken_port_fails_with_its_key(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    with socket.create_server(("127.0.0.1", config.mqtt.port)):
        found = of(check_listeners(config), "mqtt.port")
    assert found.level is Level.FAIL
    assert "set mqtt.port (--mqtt-port N, TERRAZZO_MQTT__PORT) to another port" in found.advice
    assert f"(process {os.getpid()})" in found.found


def test_ports_of_the_running_platform_are_fine(tmp_path: Path) -> None:
    with serving(b'{"status":"ok"}') as port:
        config = make_config(tmp_path, TERRAZZO_HTTP__PORT=str(port))
        with socket.create_server(("127.0.0.1", config.mqtt.port)):
            findings = list(check_listeners(config))
    assert all(finding.level is Level.OK for finding in findings)
    assert "running Terrazzo" in of(findings, "mqtt.port").found
    with serving(b"something else") as port:
        config = make_config(tmp_path, TERRAZZO_HTTP__PORT=str(port))
        assert of(check_listeners(config), "http.port").level is Level.FAIL


def test_one_port_for_two_listeners_and_a_strange_address_fail(tmp_path: Path) -> None:
    config = make_config(tmp_path, TERRAZZO_HTTP__PORT="40123", TERRAZZO_WEBSOCKET__PORT="40123")
    assert of(check_listeners(config), "websocket.port").found == "40123 is http.port too"
    config = make_config(tmp_path, TERRAZZO_MQTT__HOST="203.0.113.7")
    found = of(check_listeners(config), "mqtt.port")
    assert (found.level, found.advice) == (
        Level.FAIL,
        "set mqtt.host (TERRAZZO_MQTT__HOST) to an address of this machine",
    )


def test_listeners_are_those_that_are_switched_on(tmp_path: Path) -> None:
    keys = {listener.key for listener in listeners(make_config(tmp_path))}
    assert keys == {"http.port", "websocket.port", "mqtt.port"}
    environ = {"TERRAZZO_TCP__ENABLED": "true", "TERRAZZO_BROKER__KIND": "external", "TERRAZZO_BROKER__URL": "mqtt://b"}
    keys = {listener.key for listener in listeners(make_config(tmp_path, **environ))}
    assert keys == {"http.port", "websocket.port", "tcp.port"}


def test_a_listener_that_is_off_is_none() -> None:
    off = {"TERRAZZO_MQTT__PORT": "off", "TERRAZZO_WEBSOCKET__PORT": "off", "TERRAZZO_MQTT__WEBSOCKET_PORT": "0"}
    assert {each.key for each in listeners(load_config(None, off))} == {"http.port", "mqtt.websocket_port"}


def test_tls_files_are_looked_at(tmp_path: Path) -> None:
    pair, short = Authority(tmp_path / "a").issue("server", days=90), Authority(tmp_path / "b").issue("server", days=3)
    other = Authority(tmp_path / "c").issue("other")

    def found(cert: Path, key: Path, section: str = "HTTP") -> Finding:
        environ = {f"TERRAZZO_{section}__TLS_CERT": str(cert), f"TERRAZZO_{section}__TLS_KEY": str(key)}
        environ |= {"TERRAZZO_MQTT__TLS_PORT": "0"} if section == "MQTT" else {}
        (finding,) = check_certificates(make_config(tmp_path / "data", **environ))
        return finding

    for section in ("HTTP", "MQTT"):
        assert found(pair.cert, pair.key, section).level is Level.OK
        assert ", in 89 days" in found(pair.cert, pair.key, section).found
        assert found(short.cert, short.key, section).level is Level.WARN
        wrong = found(pair.cert, other.key, section)
        assert (wrong.level, wrong.part) == (Level.FAIL, f"{section.lower()}.tls_key")
        assert "is not the key of" in wrong.found
        assert found(tmp_path / "none", pair.key, section).part == f"{section.lower()}.tls_cert"


def test_tls_files_of_bridges_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no PEM")
    keys = {"TERRAZZO_BRIDGE__1__NAME": "hq", "TERRAZZO_BRIDGE__1__URL": "mqtts://h"}
    keys |= {"TERRAZZO_BRIDGE__1__OUT": '[{ filter = "g/#" }]'}
    assert list(check_bridge_files(make_config(tmp_path, **keys))) == []
    keys["TERRAZZO_BRIDGE__1__TLS_CA"] = str(tmp_path / "ca.pem")
    (found,) = check_bridge_files(make_config(tmp_path, **keys))
    assert (found.level, found.part) == (Level.FAIL, "bridge[1].tls_ca")


def test_a_certificate_that_the_running_platform_can_not_use_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = '# TYPE terrazzo_certificate_stale gauge\nterrazzo_certificate_stale{listener="mqtt"} %d\n'
    config = make_config(tmp_path, TERRAZZO_HTTP__TLS_CERT="c", TERRAZZO_HTTP__TLS_KEY="k")
    for stale in (0, 1):
        monkeypatch.setattr(running, "ask", lambda *_, stale=stale: (metrics % stale).encode())
        assert [each.part for each in check_certificates_in_use(config)] == ["mqtt.tls_cert"] * stale


def test_open_permissions_are_warned_of(tmp_path: Path) -> None:
    data = tmp_path / "data"
    asyncio.run(fill(data))
    (data / KEY_FILE).chmod(0o644)
    data.chmod(0o755)
    warnings = [finding for finding in check_permissions(data) if finding.level is Level.WARN]
    assert [finding.advice for finding in warnings] == [
        f"chmod 700 {data}; the next start does it too",
        f"chmod 600 {data / KEY_FILE}; the next start does it too",
    ]


def test_many_open_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "series").mkdir()
    for number in range(20):
        (tmp_path / "series" / f"{number}.sst").touch(0o644)
        (tmp_path / "series" / f"{number}.sst").chmod(0o644)
    tmp_path.chmod(0o700)
    (tmp_path / "series").chmod(0o755)
    warnings = [finding for finding in check_permissions(tmp_path) if finding.level is Level.WARN]
    assert len(warnings) == 11
    assert warnings[-1].found == "11 more files and folders are open"


async def fill_weak(data: Path) -> None:
    database = await Database.open("", data_dir=data)
    entities = Entities.open(database, Registry(), Secrets.open(data))
    await ensure_admin(entities, data_dir=data)
    config = await entities.configurations.create(SYSTEM, {"name": "c"})
    pins = {
        "short": "1234567",
        "equal-to-uid": "equal-to-uid",
        "named": "User-Named",
        "one": "same-for-all",
        "fine": "9f8e7d6c",
    }
    for number, (uid, pin) in enumerate([*pins.items(), ("two", "same-for-all")]):
        values = {"uid": uid, "name": uid, "type": "Other", "mode": "pwd", "username": f"user-{uid}", "pin": pin}
        await entities.terminals.create(SYSTEM, values | {"config_id": config["uid"], "name": f"n{number}"})
    await database.close()


def test_weak_pins_are_named_and_not_told(tmp_path: Path) -> None:
    asyncio.run(fill_weak(tmp_path))
    found = [finding for finding in examine(make_config(tmp_path)) if finding.part == "pins"]
    assert [finding.found for finding in found] == [
        "pins of fewer than 8 characters: short",
        "pins that are the terminal's uid or username: equal-to-uid, named",
        "pins that several terminals have: one, two",
    ]
    assert {finding.level for finding in found} == {Level.WARN}
    told = " ".join(finding.found + finding.advice for finding in examine(make_config(tmp_path)))
    assert "1234567" not in told
    assert "same-for-all" not in told


async def lengthen_key(data: Path, bits: int) -> None:
    """As an earlier version let one be recorded."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=bits)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    database = await Database.open("", data_dir=data)
    sealed = Secrets.open(data).seal(pem, "terminal.rsa_privatekey")
    async with database.writing() as connection:
        await connection.execute(
            TERMINAL.table.update().where(TERMINAL.table.c.uid == "one").values(rsa_privatekey=sealed)
        )
    await database.close()


def test_long_keys_are_named(tmp_path: Path) -> None:
    asyncio.run(fill_weak(tmp_path))
    for bits in (4_096, 4_104):
        assert not [finding for finding in examine(make_config(tmp_path)) if finding.part == "keys"]
        asyncio.run(lengthen_key(tmp_path, bits))
    finding = of(examine(make_config(tmp_path)), "keys")
    assert finding.level is Level.WARN
    assert finding.found == "long RSA keys: one (4104 bits)"


def test_companies_over_their_quotas_are_named(tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path))
    config = make_config(tmp_path)
    assert not [finding for finding in examine(config) if finding.part == "quotas"]
    lowered = msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, company_record_bytes=16))
    finding = of(examine(lowered), "quotas")
    assert finding.level is Level.WARN
    assert finding.found.startswith("company 1 has ")
    assert "bytes of records, more than limits.company_record_bytes = 16" in finding.found


async def fill_scripts(data: Path) -> None:
    """Scripts as an earlier version stored them: with a cell and a point that are too long by now, and a sound one."""
    database = await Database.open("", data_dir=data)
    entities = Entities.open(database, Registry(), Secrets.open(data))
    await ensure_admin(entities, data_dir=data)
    rows = [["a", "avg", "A"]]
    for name in ("sound", "long"):
        await entities.statistics.create(SYSTEM, {"name": name, "object_list": [], "script": rows})
    await entities.mappings.create(SYSTEM, {"name": "dots", "script": [["A", "", "", "STA", "T1.p", ""]]})
    async with database.writing() as connection:
        for table, name, script in (
            (STATISTICS.table, "long", [["a", "duration(a==v" + " " * 20_000, "A"], ["b", "avg", "A"]]),
            (MAPPING.table, "dots", [["A", "", "", "STA", "." * 20_000, ""]]),
        ):
            stored = msgspec.json.encode(script).decode()
            await connection.execute(table.update().where(table.c.name == name).values(script=stored))
    await database.close()


def test_scripts_that_would_be_refused_now_are_named(tmp_path: Path) -> None:
    asyncio.run(fill_scripts(tmp_path))
    found = [finding for finding in examine(make_config(tmp_path)) if finding.part == "scripts"]
    assert [finding.found for finding in found] == [
        "mapping 1 'dots': script: row 1, column 5: at most 2000 characters, got 20000",
        "statistics 2 'long': script: row 1, column 2: at most 2000 characters, got 20013",
    ]
    assert {finding.level for finding in found} == {Level.WARN}


def test_metrics_that_strangers_may_read_are_warned_of(tmp_path: Path) -> None:
    def warned(**environ: str) -> bool:
        return [finding.level for finding in check_metrics(make_config(tmp_path, **environ))] == [Level.WARN]

    assert not warned()
    assert not warned(TERRAZZO_HTTP__HOST="::1")
    assert not warned(TERRAZZO_HTTP__HOST="localhost")
    assert warned(TERRAZZO_HTTP__HOST="0.0.0.0")
    assert warned(TERRAZZO_HTTP__HOST="192.0.2.7")
    assert not warned(TERRAZZO_HTTP__HOST="0.0.0.0", TERRAZZO_METRICS__TOKEN="t" * 16)


def test_allowing_every_web_page_is_warned_of(tmp_path: Path) -> None:
    def found(origins: str) -> list[Level]:
        return [each.level for each in check_origins(make_config(tmp_path, TERRAZZO_HTTP__ALLOWED_ORIGINS=origins))]

    assert found("[]") == found('["https://console.example.com"]') == []
    assert found('["*"]') == [Level.WARN]


def test_a_bridge_whose_messages_are_nobodys_is_warned_of(tmp_path: Path) -> None:
    def warned(topics: str, **environ: str) -> bool:
        keys = {"TERRAZZO_BRIDGE__1__NAME": "hq", "TERRAZZO_BRIDGE__1__URL": "mqtt://h", **environ}
        config = make_config(tmp_path, **keys, TERRAZZO_BRIDGE__1__IN=topics)
        return [finding.level for finding in check_bridges(config)] == [Level.WARN]

    assert warned('[{ filter = "orders/#" }]')
    assert warned('[{ filter = "#" }]')
    assert warned('[{ filter = "g/#", local_prefix = "far/" }]')
    assert not warned('[{ filter = "g/#" }]')
    assert not warned('[{ filter = "r/#", local_prefix = "g/" }]')
    assert not warned('[{ filter = "orders/#" }]', TERRAZZO_BRIDGE__1__COMPANY_ID="3")


def test_decoders_that_are_allowed_and_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("one", "two"):
        about = tmp_path / package / f"{package}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[terrazzo.decoders]\nboth = {package}:f\n{package} = {package}:f\n")
        monkeypatch.syspath_prepend(str(tmp_path / package))
    config = make_config(tmp_path / "data", TERRAZZO_INGEST__DECODERS='["one", "both", "gone"]')
    assert [(each.level, each.found) for each in check_decoders(config)] == [
        (Level.OK, "one: one:f"),
        (Level.FAIL, "both: two:f, one:f, which of them?"),
        (Level.FAIL, "gone: no package has it"),
    ]
    assert list(check_decoders(make_config(tmp_path / "data"))) == []


def test_a_rotation_that_was_cut_off_is_warned_of(tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path))
    (tmp_path / OLD_KEY_FILE).write_text("ab" * 32)
    (tmp_path / OLD_KEY_FILE).chmod(0o600)
    found = [finding for finding in examine(make_config(tmp_path)) if finding.part == "secrets"]
    assert [finding.level for finding in found] == [Level.OK, Level.WARN]
    assert "terrazzo keys rotate --secrets" in found[1].advice


def test_text_of_others_has_no_meaning_for_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _print_table([Finding(Level.WARN, "[bold]pins[/]", "\x1b[2Jgone \u202eesrever", "[link=http://x]y[/link]")])
    shown = capsys.readouterr().out
    assert "[bold]pins[/]" in shown
    assert "\\x1b[2Jgone \\u202eesrever" in shown
    assert "[link=http://x]y[/link]" in shown


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_folder_without_permission_fails(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o500)
    assert of(check_data_dir(data), "data.dir").level is Level.FAIL
    assert of(check_data_dir(data / "below"), "data.dir").level is Level.FAIL


def test_file_in_the_place_of_the_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    found = of(check_data_dir(tmp_path / "data"), "data.dir")
    assert (found.level, "is not a folder" in found.found) == (Level.FAIL, True)


def test_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, level in ((2 * 2**30, Level.OK), (2**29, Level.WARN), (2**20, Level.FAIL)):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        assert check_disk(tmp_path / "not" / "there").level is level


def test_missing_package_fails_and_missing_uvloop_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(tmp_path)
    for module in ("rocksdict", "uvloop"):
        monkeypatch.setitem(sys.modules, module, None)
    findings = list(check_dependencies(config))
    assert of(findings, "package rocksdict").level is Level.FAIL
    assert of(findings, "package uvloop").level is Level.WARN


def test_every_dependency_of_the_project_is_looked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[\[<>=;~! ]", line)[0] for line in project["dependencies"]}
    assert set(MODULES) == wanted


def test_influxdb_is_asked(tmp_path: Path) -> None:
    with serving(b"", X_Influxdb_Version="1.6.7") as port:
        environ = {"TERRAZZO_STORE__KIND": "influxdb", "TERRAZZO_STORE__URL": f"http://127.0.0.1:{port}"}
        found = of(examine(make_config(tmp_path, **environ)), "store")
    assert (found.level, "InfluxDB 1.6.7 answers" in found.found) == (Level.OK, True)
    assert of(examine(make_config(tmp_path, **environ)), "store").level is Level.FAIL


def doctor(*arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "200"} | environ
    return run_loaded_text(["-m", "terrazzo", "doctor", *map(str, arguments)], env=environment)


def test_table_and_exit_status(tmp_path: Path) -> None:
    ports = {"TERRAZZO_HTTP__PORT": "0", "TERRAZZO_WEBSOCKET__PORT": "0", "TERRAZZO_MQTT__PORT": "0"}
    ports["TERRAZZO_MQTT__WEBSOCKET_PORT"] = "0"
    fine = doctor("--data", tmp_path / "data", **ports)
    assert fine.returncode == 0, fine.stdout + fine.stderr
    assert "any free port" in fine.stdout
    (tmp_path / "file").write_text("")
    bad = doctor("--data", tmp_path / "file", **ports)
    assert (bad.returncode, "fail" in bad.stdout, bad.stderr) == (1, True, "")
    worse = doctor(TERRAZZO_MQTT__PORT="x")
    assert worse.returncode == 1
    assert "TERRAZZO_MQTT__PORT: mqtt.port: expected 0..65535 or \"off\", got 'x'" in worse.stdout


def test_what_serve_refuses_doctor_refuses_too(tmp_path: Path) -> None:
    environ = {"TERRAZZO_BROKER__KIND": "external", "TERRAZZO_BROKER__URL": "mqtt://b", "COLUMNS": "300"}
    command = [sys.executable, "-m", "terrazzo", "doctor", "--data", str(tmp_path)]
    found = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "broker.kind" in found.stdout


METRICS = """# TYPE terrazzo_memory_bytes gauge
terrazzo_memory_bytes{kind="live"} 4.194304e+07
terrazzo_memory_bytes{kind="queued"} 1.048576e+06
terrazzo_memory_bytes{kind="bridges"} 0
# TYPE terrazzo_memory_company_bytes gauge
terrazzo_memory_company_bytes{company="0"} 1.048576e+06
terrazzo_memory_company_bytes{company="7"} 4.194304e+07
# TYPE terrazzo_memory_ceiling_bytes gauge
terrazzo_memory_ceiling_bytes 5.0331648e+07
# TYPE terrazzo_memory_tight gauge
terrazzo_memory_tight 1
"""


def test_who_has_how_much_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"/healthz": b'{"status":"ok"}', "/metrics": METRICS.encode()}
    monkeypatch.setattr(running, "ask", lambda config, path: answers.get(path, b""))
    config = Config()
    ceiling, use = checks.check_memory(config)
    assert (ceiling.level, ceiling.part) == (Level.OK, "memory")
    assert use.level is Level.WARN
    assert use.found == (
        "41 MiB of 48 MiB in use, it is tight: who has its share gets no more; "
        "companies: 7 40 MiB, the platform 1.0 MiB; of these live 40 MiB, queued 1.0 MiB"
    )
    assert "limits.memory_mib" in use.advice
    answers["/metrics"] = METRICS.replace("tight 1", "tight 0").encode()
    assert [each.level for each in checks.check_memory(config)] == [Level.OK] * 2
    del answers["/healthz"]
    limits = msgspec.structs.replace(config.limits, memory_mib=2**19)
    (ceiling,) = checks.check_memory(msgspec.structs.replace(config, limits=limits))
    assert ceiling.level is Level.WARN
