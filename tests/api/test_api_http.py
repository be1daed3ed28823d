"""What reaches the HTTP port and is no proper request: status, envelope, and a server that goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from api_rig import BODY_BYTES, Rig, open_rig

from own_platform import Ports, store_through
from terrazzo.ports.store import TimeSeriesStore

PING = b'{"action": "ping"}'


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """One platform: tests here change nothing in it, or open their own."""
    async with open_rig(tmp_path_factory.mktemp("http")) as opened:
        yield opened


async def refused(rig: Rig, body: bytes, *, status: int = 200, **headers: str) -> str:
    """The ``info`` of a request that reaches no operation; the server answers the next one."""
    got, answer = await rig.post(body, token=rig.tokens["admin"], **headers)
    assert (got, answer["code"], answer["result"]) == (status, 10401, {})
    assert set(answer) == {"resp", "actionid", "code", "msg", "info", "result", "reason"}
    assert (await rig.call("ping"))["pong"] == "pong"
    return str(answer["info"])


@pytest.mark.parametrize(
    ("body", "info"),
    [
        (b"", "body: is empty"),
        (b" \n", "body: is empty"),
        (b"hello", "body: not JSON: "),
        (b'{"action": "ping"', "body: not JSON: "),
        (b'{"action": "ping"} {}', "body: not JSON: "),
        (b'{"action": "ping", "x": NaN}', "body: not JSON: "),
        (b'{"action": "ping", "x": -Infinity}', "body: not JSON: "),
        (b'{"action": "ping", "x": "\\q"}', "body: not JSON: "),
        (b'\xef\xbb\xbf{"action": "ping"}', "body: not JSON: "),
        (b'{"action": "ping", "x": "\xff"}', "body: not UTF-8 at byte 25"),
        ('{"action": "ping"}'.encode("utf-16"), "body: not UTF-8 at byte 0"),
        (b"[]", "body: expected object, got array"),
        (b'"ping"', "body: expected object, got str"),
        (b"5", "body: expected object, got int"),
        (b"null", "body: expected object, got null"),
        (b"{}", "action: is required"),
        (b'{"action": 5}', "action: expected str, got int"),
        (b'{"action": null}', "action: expected str, got null"),
        (b'{"action": ["ping"]}', "action: expected str, got array"),
        (b"[" * 100_000 + b"]" * 100_000, "body: expected object, got array"),
        (b'{"action": "ping", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "body: nested too deeply"),
        (b'{"action": "ping", "actionid": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "body: nested too deeply"),
        (b'{"action": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "body: nested too deeply"),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_what_is_no_request_is_named(rig: Rig, body: bytes, info: str) -> None:
    assert (await refused(rig, body)).startswith(info)


async def test_an_unknown_action_is_not_found(rig: Rig) -> None:
    status, answer = await rig.post(b'{"action": "no_such", "actionid": 3}')
    assert (status, answer["code"], answer["resp"], answer["actionid"]) == (404, 10401, "no_such", 3)
    assert answer["info"] == "action: unknown: 'no_such'"
    near = {
        "get_termnal_list": "get_terminal_list",
        "get_objects_list": "get_object_list",
        "Login": "login",
        "lgoin": "login",
    }
    for name, meant in near.items():
        _, answer = await rig.post(json.dumps({"action": name}).encode())
        assert answer["info"] == f"action: unknown: {name!r}; did you mean {meant}?"
    _, answer = await rig.post(json.dumps({"action": "g" * 5_000}).encode())
    assert answer["info"] == f"action: unknown: {'g' * 100!r}"


@pytest.mark.parametrize("actionid", ["a", "", 7, 1.50, -0.0, None, True, [1, {"b": None}], {"a": "ü"}, 10**40])
async def test_actionid_comes_back_unchanged(rig: Rig, actionid: Any) -> None:
    body = json.dumps({"actionid": actionid, "action": "ping", "message": 5}).encode()
    for token in (None, rig.tokens["viewer"]):  # refused, and answered with a fault
        status, answer = await rig.post(body, token=token)
        assert status == 200
        assert repr(answer["actionid"]) == repr(actionid)


async def test_actionid_is_empty_where_none_was_sent(rig: Rig) -> None:
    assert (await rig.ask("ping"))["actionid"] == ""


async def test_a_body_up_to_the_limit_is_read(rig: Rig) -> None:
    padding = BODY_BYTES - len(b'{"action": "ping", "x": ""}')
    body = b'{"action": "ping", "x": "' + b"x" * padding + b'"}'
    status, answer = await rig.post(body, token=rig.tokens["viewer"])
    assert (status, answer["code"]) == (200, 200)
    info = await refused(rig, body + b" ", status=413)
    assert info == f"body: longer than {BODY_BYTES} bytes (limits.body_bytes)"


async def test_a_long_body_without_a_length_is_refused_too(rig: Rig) -> None:
    async def chunks() -> Any:
        for _ in range(BODY_BYTES // 4096 + 1):
            yield b" " * 4096

    async with rig.http.post("/apiproxy/api", data=chunks(), headers={"Content-Type": "application/json"}) as response:
        assert response.status == 413
        assert (await response.json())["info"].startswith("body: longer than")


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=gbk",
    ],
)
async def test_other_media_types_are_refused(rig: Rig, media_type: str) -> None:
    info = await refused(rig, PING, status=415, Content_Type=media_type)
    assert info == f"Content-Type: expected application/json in UTF-8, got {media_type}"


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "application/json;charset=UTF-8"])
async def test_json_may_say_that_it_is_utf8(rig: Rig, media_type: str) -> None:
    status, answer = await rig.post(PING, token=rig.tokens["viewer"], Content_Type=media_type)
    assert (status, answer["code"]) == (200, 200)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/apiproxy/api", {"POST"}),
        ("PUT", "/apiproxy/api", {"POST"}),
        ("DELETE", "/apiproxy/api/ping", {"POST"}),
        ("POST", "/grid/api/v1/grid/getLastItem", {"GET", "HEAD"}),
        ("DELETE", "/readyz", {"GET", "HEAD"}),
    ],
)
async def test_other_methods_are_refused(rig: Rig, method: str, path: str, allowed: set[str]) -> None:
    async with rig.http.request(method, path) as response:
        answer = await response.json()
        assert (response.status, answer["code"]) == (405, 10401)
        assert set(response.headers["Allow"].split(",")) == allowed
        assert answer["info"].startswith(f"method: {method} is not allowed here")
        parameters = {"method": method, "allowed": response.headers["Allow"]}
        assert answer["reason"] == {"code": "method_not_allowed", "parameters": parameters, "field": "method"}


@pytest.mark.parametrize(
    "path",
    [
        *("/nothing", "/apiproxy", "/apiproxy/api/", "/apiproxy/api/nothing", "/apiproxy/api/ping/", "/%00"),
        *("/apiproxy/api/ping%2F", "/apiproxy/api/%7Bname%7D", "/grid/api/v1/grid/nothing"),
    ],
)
async def test_unknown_paths_are_not_found(rig: Rig, path: str) -> None:
    async with rig.http.get(path) as response:
        answer = await response.json()
        assert (response.status, answer["code"]) == (404, 10401)
        assert answer["info"].startswith("path: nothing is at /")
        assert (answer["reason"]["code"], answer["reason"]["field"]) == ("path_unknown", "path")


async def test_what_is_refused_before_an_action_is_found_says_why_to_programs_too(rig: Rig) -> None:
    async with rig.http.post("/apiproxy/api/get_terminal_lst", json={}) as response:
        answer = await response.json()
        where = "/apiproxy/api/get_terminal_lst; did you mean /apiproxy/api/get_terminal_list?"
        assert (response.status, answer["info"]) == (404, f"path: nothing is at {where} /docs has all paths")
        assert answer["reason"]["parameters"]["near"] == "/apiproxy/api/get_terminal_list"
    async with rig.http.delete("/apiproxy/api/ping") as response:
        answer = await response.json()
        assert (response.status, answer["reason"]["code"]) == (405, "method_not_allowed")
        assert answer["info"].startswith("method: DELETE is not allowed here, ")
    async with rig.http.post("/apiproxy/api/ping", data=b"{}", headers={"Content-Type": "text/xml"}) as response:
        answer = await response.json()
        assert answer["info"] == "Content-Type: expected application/json in UTF-8, got text/xml"
        assert (answer["reason"]["code"], answer["reason"]["field"]) == ("expected_media_type", "Content-Type")


async def test_what_is_not_http_ends_only_its_own_connection(rig: Rig) -> None:
    port = rig.http._base_url.port  # type: ignore[union-attr]
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"NONSENSE\r\n\r\n",
        b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\n",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(garbage)
        writer.write_eof()
        await asyncio.wait_for(reader.read(), 10)
        writer.close()
        await writer.wait_closed()
    assert (await rig.call("ping"))["pong"] == "pong"


async def test_health_says_that_the_process_lives(rig: Rig) -> None:
    assert await rig.get("/healthz", "nobody") == (200, {"status": "ok"})
    async with rig.http.head("/healthz") as response:
        assert (response.status, await response.read()) == (200, b"")


class Ailing:
    """A real store whose check says what a test puts in, or nothing at all."""

    def __init__(self, store: TimeSeriesStore) -> None:
        self._store = store
        self.error: Exception | None = None
        self.hangs = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def check(self) -> None:
        if self.error is not None:
            raise self.error
        if self.hangs:
            await asyncio.Event().wait()


async def test_ready_means_every_part(tmp_path: Path) -> None:
    async with open_rig(tmp_path, ports=Ports(open_store=store_through(Ailing))) as rig:
        store: Any = rig.services.store
        others = {name: {"ready": True} for name in ("mqtt", "websocket", "tcp", "ingest", "database")}
        parts = {**others, "store": {"ready": True}}
        assert await rig.get("/readyz", "nobody") == (200, {"ready": True, "parts": parts})
        store.error = OSError("disk full")
        parts["store"] = {"ready": False, "reason": "disk full"}
        assert await rig.get("/readyz", "nobody") == (503, {"ready": False, "parts": parts})
        store.error, store.hangs = None, True
        told = {"code": "part_is_silent", "parameters": {"seconds": "2"}}
        parts["store"] = {"ready": False, "reason": "no answer within 2 s", "told": told}
        assert await rig.get("/readyz", "nobody") == (503, {"ready": False, "parts": parts})
        failing = (await rig.call("get_attention", "root"))["tasks"]
        assert failing == [{"name": "store", "error": "no answer within 2 s", "told": told}]
        status = await rig.call("get_platform_status", "root")
        assert (status["parts"]["store"], status["reasons"]) == ("no answer within 2 s", {"store": told})


async def test_metrics_count_by_operation_and_status(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.call("ping")
        await rig.ask("ping", "nobody")
        await rig.post(b'{"action": "made-up-1"}')
        await rig.post(b'{"action": "made-up-2"}')
        await rig.post(PING, Content_Type="text/plain")
        async with rig.http.get("/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            lines = (await response.text()).splitlines()
        assert 'terrazzo_api_requests_total{code="200",operation="ping"} 1.0' in lines
        assert 'terrazzo_api_requests_total{code="10402",operation="ping"} 1.0' in lines
        assert 'terrazzo_api_refused_total{status="404"} 2.0' in lines
        assert 'terrazzo_api_refused_total{status="415"} 1.0' in lines
        assert 'terrazzo_api_seconds_count{operation="ping"} 2.0' in lines
        assert 'terrazzo_api_seconds_bucket{le="+Inf",operation="ping"} 2.0' in lines
        assert not [line for line in lines if "made-up" in line]
        assert [line for line in lines if line.startswith("process_cpu_seconds_total")]


async def test_an_internal_error_shows_an_id_and_no_trace(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.add_terminal("t1")
        await rig.services.store.close()  # whatever else may happen to a store
        rig.services.registry.terminal = None  # type: ignore[method-assign,assignment]
        answer = await rig.ask("get_last_grid", terminal_id="t1")
        assert answer["code"] == 500
        incident = answer["info"].removeprefix("internal error; the log has it as ")
        assert len(incident) == 12
        assert "Traceback" not in json.dumps(answer)
        record = next(record for record in caplog.records if incident in record.getMessage())
        assert record.exc_info


async def test_a_store_that_is_away_is_unavailable(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.add_terminal("t1")
        await rig.services.store.close()
        body = b'{"action": "get_last_grid", "terminal_id": "t1"}'
        status, answer = await rig.post(body, token=rig.tokens["viewer"])
        assert (status, answer["code"]) == (503, 500)
        assert answer["info"]
