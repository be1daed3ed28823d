"""``/bulk/<entity>``: who may, how long a file may be, progress, and files that make the same records elsewhere."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from running import PASSWORD, Platform, wait_for
from terrazzo.bulk.entities import BULK_ENTITIES
from terrazzo.client import ActionError, Client
from terrazzo.client.bulk import Progress

NAMES = [each.name for each in BULK_ENTITIES]
LIMIT = 100_000


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """An empty platform that takes short files only."""
    environment = {"TERRAZZO_LIMITS__IMPORT_BYTES": str(LIMIT)}
    with Platform(tmp_path_factory.mktemp("elsewhere") / "data", env=environment) as running:
        running.login()
        yield running


def export(client: Client, entity: str, **options: Any) -> bytes:
    return b"".join(client.export_records(entity, **options))


def fill(platform: Platform) -> None:
    """Records whose texts, lists and references are hard to write down."""
    client = platform.client
    awkward = 'semi; comma, "quote"\nline Ä 温度'
    client.call(
        "import_terminal_configs", rows=[{"name": "C", "description": awkward, "config_script": {"a": [1, "x"]}}]
    )
    rows = [{"uid": f"x{n}", "name": awkward, "type": "T", "config_id": "C", "mode": "pwd"} for n in range(3)]
    credentials = {"username": "u", "pin": "=1+1", "keep_alive": 60}
    client.call("import_terminals", rows=[row | credentials for row in rows])
    script = [["T", "Temperature", "温度", "STA", "$AdapterID-1.T", "x", ""]]
    client.call("import_mappings", rows=[{"name": "M", "script": script}])
    client.call("import_controls", rows=[{"name": "K", "script": [["S", "a", "b", "OBJ", "$AdapterID-1.S", "1"]]}])
    client.call("import_customers", rows=[{"name": "Customer", "secret": "hush"}])
    references = {"mapping_id": "M", "control_id": "K", "customer_id": "Customer", "terminal_list": ["x2", "x0"]}
    client.call("import_objects", rows=[{"name": "gone"}, {"name": "first", **references, "secret": "follow"}])
    gone, first = client.call("get_object_list", order_by=["id", "asc"], page_size=2)["data"]
    client.call("delete_object", uid=gone["uid"])
    client.call("import_objects", rows=[{"name": "second", "object_list": [first["uid"]]}])


def test_a_planted_formula_is_text_in_the_bytes_of_the_file(source: Platform) -> None:
    asked = urllib.request.Request(f"{source.url}/bulk/terminals", headers={"Authorization": f"Bearer {source.token}"})
    client = source.client
    config = client.call("import_terminal_configs", rows=[{"name": "planted"}])
    assert config["created"] == 1
    row = {"uid": "planted", "name": "=1+1", "type": "-1", "config_id": "planted", "mode": "pwd"}
    client.call("import_terminals", rows=[row | {"username": "u", "pin": "p", "keep_alive": 60}])
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            lines = answer.read().splitlines()
    finally:
        client.call("delete_terminal", uid="planted")
    (line,) = [line for line in lines if line.startswith(b"planted,")]
    assert line.startswith(b"planted,1,'=1+1,,'-1,"), line


def test_an_export_makes_the_same_records_on_an_empty_platform(tmp_path: Path, source: Platform) -> None:
    files = {
        (name, form): export(source.client, name, format=form, secrets=True)
        for name in NAMES
        for form in ("csv", "json", "jsonl")
    }
    with Platform(tmp_path / "data") as empty:
        empty.login()
        for name, form in zip(NAMES, ("csv", "json", "jsonl") * len(NAMES), strict=False):
            report = empty.client.import_records(name, files[name, form])
            assert report["created"] == report["total"] > 0
        for (name, form), file in files.items():
            assert export(empty.client, name, format=form, secrets=True) == file
            again = empty.client.import_records(name, file, mode="upsert")
            assert again["unchanged"] == again["total"], (name, form)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("source") / "data") as running:
        running.login()
        fill(running)
        yield running


def test_secrets_are_left_out_unless_an_administrator_asks(source: Platform, platform: Platform) -> None:
    rows = json.loads(export(source.client, "terminals", format="json"))
    assert {"pin", "rsa_privatekey"}.isdisjoint(rows[0])
    assert b"hush" not in export(source.client, "customers")
    assert b"hush" in export(source.client, "customers", secrets=True)
    for name in ("worker", "reader"):
        with Client(platform.url, username=name, password=PASSWORD) as client:
            assert export(client, "terminals").startswith(b"uid,name,")
            with pytest.raises(ActionError, match="secrets: needs the role admin") as error:
                export(client, "terminals", secrets=True)
            assert error.value.code == 10403


def test_an_export_without_secrets_can_be_upserted(source: Platform) -> None:
    client = source.client
    text = export(client, "terminals").replace(b",60,", b",90,")
    assert client.import_records("terminals", text, mode="upsert")["updated"] == 3
    record = client.terminal("x1")
    assert (record["keep_alive"], record["pin"]) == (90, "=1+1")


def test_another_company_exports_nothing_of_ours(platform: Platform, chief: Client, stranger: Client) -> None:
    chief.call("import_customers", rows=[{"name": "ours only"}])
    for form in ("csv", "json", "jsonl"):
        assert b"ours only" in export(chief, "customers", format=form)
        assert b"ours only" not in export(stranger, "customers", format=form)
        assert b"ours only" in export(platform.client, "customers", format=form)
    assert b"permission_company_id" not in export(chief, "customers")
    assert b"permission_company_id" in export(platform.client, "customers")


def request(url: str, *, token: str | None, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers), timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_nobody_may_anything(platform: Platform) -> None:
    for name in NAMES:
        for body in (None, b"name\nx\n"):
            assert request(f"{platform.url}/bulk/{name}", token=None, body=body)[1]["code"] == 10402
    assert request(f"{platform.url}/bulk/nothing", token=platform.token)[0] == 404


def test_each_role_may_export_and_only_administrators_import(platform: Platform) -> None:
    for who, may in (("chief", 200), ("worker", 10403), ("reader", 10403)):
        with Client(platform.url, username=who, password=PASSWORD) as client:
            client.login()
            for name in NAMES:
                assert export(client, name).count(b"\r\n") >= 1
                url = f"{platform.url}/bulk/{name}?dry_run=1"
                answer = request(url, token=client.session.token, body=b"name,script\nx,[]\n")[1]
                assert answer["code"] == may, (who, name, answer)


def test_a_file_that_is_too_long_is_refused(elsewhere: Platform) -> None:
    url, token = f"{elsewhere.url}/bulk/customers", elsewhere.token
    long = b"name\n" + b"x\n" * (LIMIT // 2)
    status, answer = request(url, token=token, body=long)
    assert (status, answer["code"]) == (413, 10401)
    assert answer["info"] == f"body: longer than {LIMIT} bytes (limits.import_bytes)"
    status, answer = request(url, token=token, body=b"name\n" + b"x\n" * 1000)
    assert (status, answer["result"]["created"]) == (200, 1000)
    assert request(f"{url}?mode=other", token=token, body=b"x")[1]["info"].startswith("mode: ")


def test_progress_is_told_and_ends_with_the_report(platform: Platform) -> None:
    seen: list[Progress] = []
    text = "name\n" + "".join(f"progress {n}\n" for n in range(2000))
    report = platform.client.import_records("customers", text, on_progress=seen.append)
    assert report["created"] == 2000
    assert [each.stage for each in seen] == sorted((each.stage for each in seen), key=["read", "check", "write"].index)
    assert seen[-1] == Progress("write", 2000, 2000)
    plain = request(f"{platform.url}/bulk/customers?dry_run=1", token=platform.token, body=b"name\nx\n")
    assert plain[1]["result"]["created"] == 1


def test_imports_of_a_company_wait_for_each_other_and_not_for_anothers(
    platform: Platform, chief: Client, stranger: Client
) -> None:
    head = (
        f"POST /bulk/terminals HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {chief.session.token}\r\n"
        "Content-Length: 100000\r\nContent-Type: text/csv\r\n\r\nuid,name\n"
    )
    with ExitStack() as open_ones:
        for _ in range(5):  # one is read, as far as it has come, and four wait
            slow = open_ones.enter_context(socket.create_connection(("127.0.0.1", platform.http)))
            slow.sendall(head.encode())
        url = f"{platform.url}/bulk/customers"

        def refused() -> dict[str, Any] | None:
            status, answer = request(url, token=chief.session.token, body=b"")
            return answer if status == 429 else None

        assert "4 of your company wait already" in wait_for(refused, "too many wait")["info"]
        assert stranger.import_records("customers", "name\nSomebody\n")["created"] == 1
    wait_for(
        lambda: request(url, token=chief.session.token, body=b"name\nC\n")[0] == 200, "those that were left are over"
    )
