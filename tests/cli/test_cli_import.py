"""``terrazzo import`` and ``export`` against a served platform: files, pipes, tables of errors, exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from paho.mqtt import publish

from loaded_process import run_loaded
from running import PASSWORD, Platform
from support import free_port
from terrazzo.bulk.entities import BULK_ENTITIES
from terrazzo.bulk.exporting import secret_columns
from terrazzo.cli.export import SECRETS
from terrazzo.cli.import_ import Kind

HEAD = "uid;name;type;config_id;mode;username;pin\r\n"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("cli") / "data") as running:
        running.login().add_config("Standard")
        yield running


def terrazzo(
    platform: Platform, *arguments: str, given: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    command = ["-m", "terrazzo", *arguments, "--url", platform.url]
    env = {**os.environ, "TERRAZZO_PASSWORD": PASSWORD, "COLUMNS": "160", **environment}
    return run_loaded(command, given=given, env=env)


def rows(*uids: str) -> bytes:
    lines = "".join(f"{uid};Terminal {uid};Adapter-II;Standard;pwd;u;1234\r\n" for uid in uids)
    return b"\xef\xbb\xbf" + (HEAD + lines).encode()


def test_a_spreadsheets_file_there_and_back(platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "terminals.csv"
    file.write_bytes(rows("a1", "a2"))
    dry = terrazzo(platform, "import", str(file), "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, b"2 rows: would be 2 created, 0 updated, 0 unchanged\n"), dry.stderr
    done = terrazzo(platform, "import", str(file))
    assert (done.returncode, done.stdout) == (0, b"2 rows: 2 created, 0 updated, 0 unchanged\n")
    assert platform.client.terminal("a2")["pin"] == "1234"
    out = tmp_path / "out.csv"
    exported = terrazzo(platform, "export", "records", "--output", str(out))
    assert (exported.returncode, exported.stdout) == (0, b"")
    assert b"left out: pin, rsa_privatekey" in exported.stderr
    head, *lines = out.read_bytes().splitlines()
    assert head.startswith(b"uid,")
    assert {b"a1", b"a2"} <= {line.partition(b",")[0] for line in lines}
    assert b"1234" not in out.read_bytes()
    again = terrazzo(platform, "import", str(out), "--mode", "upsert")
    assert again.stdout == b"%d rows: 0 created, 0 updated, %d unchanged\n" % (len(lines), len(lines))


def test_through_pipes_with_a_token_and_secrets(platform: Platform) -> None:
    token = {"TERRAZZO_TOKEN": platform.token or "", "TERRAZZO_PASSWORD": ""}
    text = json.dumps([{"name": "Customer", "secret": "hush"}]).encode()
    done = terrazzo(platform, "import", "-", "--entity", "customers", given=text, **token)
    assert done.returncode == 0, done.stderr
    options = ("--entity", "customers", "--format", "jsonl", "--secrets")
    exported = terrazzo(platform, "export", "records", *options, **token)
    assert [json.loads(line)["secret"] for line in exported.stdout.splitlines()] == ["hush"]
    assert exported.stderr == b""


def test_a_file_with_secrets_is_its_owners(platform: Platform, tmp_path: Path) -> None:
    out = tmp_path / "secret.json"
    done = terrazzo(platform, "export", "records", "--format", "json", "--secrets", "--output", str(out))
    assert done.returncode == 0, done.stderr
    assert out.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret.json"]


def test_errors_are_a_table_and_status_1(platform: Platform) -> None:
    bad = rows("b1", "b/2") + b"b3;;Adapter-II;Nowhere;pwd;u;1\r\n"
    for more in ((), ("--dry-run",)):
        done = terrazzo(platform, "import", "-", *more, given=bad)
        assert (done.returncode, done.stdout) == (1, b"")
        shown = done.stderr.decode()
        for cells in (
            ("3", "uid", "contains '/'"),
            ("4", "name", "is required"),
            ("4", "config_id", "no configuration"),
        ):
            assert any(all(cell in line for cell in cells) for line in shown.splitlines()), (cells, shown)
        assert "3 errors in 2 of 3 rows; nothing was imported" in shown
    for given, reason in ((b"", b"no header row"), (b"[1]", b"not a JSON array"), (b"uid\n\xff", b"not UTF-8")):
        done = terrazzo(platform, "import", "-", given=given)
        assert done.returncode == 1
        assert reason in done.stderr


def test_whatever_else_goes_wrong_is_status_2(platform: Platform, tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    for arguments, environment, reason in (
        (("import", str(tmp_path / "none.csv")), {}, b"No such file"),
        (("import", "-", "--entity", "chairs"), {}, b"chairs"),
        (("import", "-"), {"TERRAZZO_PASSWORD": "wrong"}, b"10402"),
        (("import", "-"), {"TERRAZZO_PASSWORD": ""}, b"set TERRAZZO_PASSWORD"),
        (("export", "records", "--output", str(tmp_path / "no" / "file")), {}, b"No such file"),
        (("export", "records"), {"TERRAZZO_TOKEN": "bad"}, b"10402"),
    ):
        done = terrazzo(platform, *arguments, **environment)
        assert done.returncode == 2, (arguments, done.stderr)
        assert reason in done.stderr
    command = [sys.executable, "-m", "terrazzo", "export", "records", "--url", nowhere, "--token", "x"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr.startswith(f"terrazzo: --url: {nowhere}".encode())) == (2, True)


def test_the_command_line_knows_every_entity_and_its_secrets() -> None:
    assert {kind.value for kind in Kind} == {each.name for each in BULK_ENTITIES}
    secret = {each.name: ", ".join(secret_columns(each.entity)) for each in BULK_ENTITIES}
    assert {kind.value: SECRETS.get(kind, "") for kind in Kind} == secret


def test_time_series_as_files(platform: Platform, tmp_path: Path) -> None:
    platform.add_terminal("s1", str(platform.call("get_terminal_config_list")[0]["uid"]))
    auth = {"username": "u-s1", "password": "pin-s1"}
    for value in (1, 2, 3):
        publish.single("g/s1/r", json.dumps({"T": value}), 1, port=platform.mqtt, client_id="s1", auth=auth)
    grid = terrazzo(platform, "export", "grid", "s1", "--format", "jsonl", "--topic", "r")
    assert [json.loads(line)["payload"] for line in grid.stdout.splitlines()] == [{"T": 1}, {"T": 2}, {"T": 3}], (
        grid.stderr
    )
    out = tmp_path / "s1.csv"
    options = ("--keys", "T", "--start", "2020-01-01 00:00:00", "--output", str(out))
    assert terrazzo(platform, "export", "grid", "s1", *options).returncode == 0
    assert [line.rsplit(",", 1)[1] for line in out.read_text().splitlines()] == ["T", "1", "2", "3"]
    platform.call("import_objects", rows=[{"name": "empty"}])
    object_id = platform.call("get_object_list")["data"][0]["id"]
    assert terrazzo(platform, "export", "mosaic", str(object_id)).returncode == 0
    none = terrazzo(platform, "export", "mosaic", "999999")
    assert (none.returncode, b"10404" in none.stderr) == (2, True)
