"""Bodies: what one costs before the token was looked at, what is inflated where, and what is no form."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from api.api_rig import BODY_BYTES, PASSWORD, Rig, open_rig
from lasting import open_ports
from terrazzo.api.paths.table import PATHS as PATHS_OF_COMPONENTS
from terrazzo.api.transports.bodies.inflate import Inflater
from terrazzo.api.transports.bodies.reader import UNPROVEN_BYTES
from terrazzo.api.transports.http import build_apps
from waiting import close, until

JSON = {"Content-Type": "application/json"}
PATHS = ("/apiproxy/api", "/retainer/api", "/object/api/v1/file/discard", "/api/send/send-email", "/bulk/terminals")


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """200 MiB in 200 KiB."""
    return gzip.compress(bytes(200 * 2**20), 9, mtime=0)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """One platform: tests here change nothing in it, or open their own."""
    async with open_rig(tmp_path_factory.mktemp("bodies")) as opened:
        yield opened


def bearer(rig: Rig, who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {rig.tokens[who]}"} if who in rig.tokens else {}


async def post(rig: Rig, path: str, data: Any, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
    async with rig.http.post(path, data=data, headers=headers, skip_auto_headers=("Content-Type",)) as response:
        return response.status, json.loads(await response.read())


@pytest.mark.parametrize("path", PATHS)
async def test_a_compressed_body_without_a_token_is_not_inflated(rig: Rig, bomb: bytes, path: str) -> None:
    assert len(bomb) < BODY_BYTES
    tracemalloc.start()
    try:
        status, answer = await post(rig, path, bomb, {**JSON, "Content-Encoding": "gzip"})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (status, answer["code"]) in ((415, 10402), (200, 10402))
    assert peak < 8 * 2**20


@pytest.mark.parametrize("path", [*PATHS, "/influx/query", "/mqtt/auth", "/mqtt/acl"])
@pytest.mark.parametrize("token", ["", "forged"])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_short_body_that_is_compressed_needs_a_good_token_too(
    rig: Rig, path: str, token: str, coding: str
) -> None:
    """A login that would succeed, in some hundred bytes: without a token nothing is inflated, however little it is."""
    login = b'{"action": "login", "username": "admin-user", "password": "%s"}' % PASSWORD.encode()
    body = gzip.compress(login) if coding == "gzip" else zlib.compress(login)
    headers = {**JSON, "Content-Encoding": coding, **({"Authorization": f"Bearer {token}"} if token else {})}
    async with rig.http.post(path, data=body, headers=headers) as response:
        answer = await response.text()
    refused = '"code":10402' in answer or answer.startswith('{"error":')
    assert response.status in (401, 404, 415) or (response.status == 200 and refused), answer
    if path == "/apiproxy/api":
        assert (response.status, refused) == (200 if token else 415, True)
        _, plain = await post(rig, path, login, JSON)
        assert plain["code"] == 200, "the same is good as it is"


@pytest.mark.parametrize("path", PATHS)
async def test_with_a_token_it_is_inflated_in_bounds(rig: Rig, bomb: bytes, path: str) -> None:
    tracemalloc.start()
    try:
        headers = {**JSON, **bearer(rig, "admin"), "Content-Encoding": "gzip"}
        status, answer = await post(rig, path, bomb, headers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert status == 413, answer
    assert "longer than" in answer["info"]
    assert peak < 32 * 2**20


async def test_inflating_is_done_by_other_threads(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()
    step = Inflater.step

    def noted(inflater: Inflater, data: bytes = b"") -> bytes:
        threads.add(threading.current_thread())
        return step(inflater, data)

    monkeypatch.setattr(Inflater, "step", noted)
    body = json.dumps({"action": "ping", "message": "x" * 60_000}).encode()
    for coding, coded in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body)), ("DEFLATE", raw(body))):
        headers = {**JSON, **bearer(rig, "viewer"), "Content-Encoding": coding}
        status, answer = await post(rig, "/apiproxy/api", coded, headers)
        assert (status, len(answer["result"]["pong"])) == (200, 60_000)
    assert threads, "something was inflated"
    assert threading.main_thread() not in threads


def raw(body: bytes) -> bytes:
    """Deflate without zlib's head, as some send it."""
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(body) + deflate.flush()


@pytest.mark.parametrize(
    ("coding", "body", "status", "info"),
    [
        ("br", b"x", 415, "Content-Encoding: expected gzip or deflate, got 'br'"),
        ("gzip, gzip", b"x", 415, "Content-Encoding: expected gzip or deflate, got 'gzip, gzip'"),
        ("gzip", b"no gzip", 400, "body: not gzip: "),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-5], 400, "body: its gzip stream ends too early"),
        ("gzip", gzip.compress(b"{}", mtime=0) + b"x", 400, "body: more follows the end of its gzip stream"),
        ("gzip", b"", 400, "body: its gzip stream ends too early"),
        ("deflate", b"\xff\xff", 400, "body: not deflate: "),
        ("identity", b'{"action": "ping"}', 200, ""),
    ],
)
async def test_codings_that_are_none(rig: Rig, coding: str, body: bytes, status: int, info: str) -> None:
    headers = {**JSON, **bearer(rig, "viewer"), "Content-Encoding": coding}
    got, answer = await post(rig, "/apiproxy/api", body, headers)
    assert (got, answer["info"][: len(info)]) == (status, info)


LONG = b'{"action": "ping", "message": "' + b"x" * UNPROVEN_BYTES + b'"}'


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "forged"])
async def test_a_long_body_is_not_asked_for_without_a_good_token(rig: Rig, path: str, token: str) -> None:
    host, _, port = rig.addresses.http.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    credential = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{credential}"
    writer.write(f"{head}Expect: 100-continue\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode())
    answer = (await asyncio.wait_for(reader.read(), 15)).decode()
    await close(writer)
    assert "100 Continue" not in answer
    assert answer.split(" ")[1] in ("413", "200")
    assert '"code":10402' in answer
    assert "connection: close" in answer.lower()


async def test_a_long_body_in_chunks_is_read_as_far_as_a_short_one(rig: Rig) -> None:
    taken = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal taken
        while taken < BODY_BYTES:
            taken += 4_096
            yield b" " * 4_096

    status, answer = await post(rig, "/apiproxy/api", chunks(), JSON)
    assert (status, answer["code"]) == (413, 10402)
    assert answer["info"].startswith(f"body: longer than {UNPROVEN_BYTES} bytes, which needs a good token")


async def test_short_ones_need_no_token_and_good_tokens_take_long_ones(rig: Rig) -> None:
    short = json.dumps({"action": "login", "username": "x" * (UNPROVEN_BYTES - 100), "password": "y"}).encode()
    status, answer = await post(rig, "/apiproxy/api", short, JSON)
    assert (status, answer["code"] in (10401, 10402)) == (200, True)
    for who, code in (("viewer", 200), ("nobody", 10402)):
        _, answer = await post(rig, "/apiproxy/api", LONG, {**JSON, **bearer(rig, who)})
        assert answer["code"] == code
    status, answer = await post(rig, "/apiproxy/api", LONG, {**JSON, "Authorization": "Bearer expired"})
    assert (status, answer["code"]) == (200, 10402), "as for a short body"


async def test_whoever_expects_to_be_asked_on_is(rig: Rig) -> None:
    def ask() -> tuple[int, dict[str, Any]]:
        headers = {**JSON, **bearer(rig, "viewer"), "Expect": "100-continue"}
        with closing(HTTPConnection(rig.addresses.http.removeprefix("http://"), timeout=10)) as connection:
            connection.request("POST", "/apiproxy/api", LONG, headers)
            with connection.getresponse() as answer:
                return answer.status, json.loads(answer.read())

    status, answer = await asyncio.to_thread(ask)
    assert (status, answer["code"]) == (200, 200)


async def test_no_route_waits_for_a_body_for_ever(tmp_path: Path) -> None:
    """Whatever takes a POST: one that promises a body and is silent then, as nobody, is let go of in time."""
    async with open_rig(tmp_path, limits={"request_timeout_s": 1}) as rig:
        router = build_apps(rig.services).http.router
        paths = {
            route.resource.canonical for route in router.routes() if route.method in ("POST", "*") and route.resource
        }
        several = {path.path for path in PATHS_OF_COMPONENTS} - set(PATHS)  # of one handler, as those of ``PATHS`` are
        paths = {path.replace("{", "").replace("}", "") for path in paths - several} | set(PATHS)
        assert {"/console/policy-reports", "/influx/query", "/apiproxy/api"} <= paths
        host, _, port = rig.addresses.http.removeprefix("http://").partition(":")

        async def is_let_go(path: str) -> bool:
            reader, writer = await asyncio.open_connection(host, int(port))
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
            writer.write(head.encode())
            try:
                async with asyncio.timeout(20):
                    await reader.read()
            except TimeoutError:
                return False
            finally:
                await close(writer)
            return True

        asked = sorted(paths)
        found = await asyncio.gather(*map(is_let_go, asked))
        assert [path for path, ended in zip(asked, found, strict=True) if not ended] == []


async def test_who_breaks_off_leaves_no_traceback(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    head = f"Host: x\r\nAuthorization: Bearer {rig.tokens['admin']}\r\nContent-Type: application/json\r\n"
    async with open_ports(rig) as ports:
        for path in PATHS:
            reader, writer = await asyncio.open_connection("127.0.0.1", ports.http)
            writer.write(f"POST {path} HTTP/1.1\r\n{head}Content-Length: 100\r\nExpect: 100-continue\r\n\r\n".encode())
            await asyncio.wait_for(reader.readuntil(b"Continue\r\n\r\n"), 10)
            writer.write(b'{"')
            await writer.drain()
            writer.transport.abort()
            await close(writer)
        async with ports.client.get(f"http://127.0.0.1:{ports.http}/healthz") as response:
            assert response.status == 200
        await until(lambda: ports.connection_limiter.open <= 1, "they are gone")
    assert [record for record in caplog.records if record.exc_info] == []


FORM_PATHS = (*PATHS, "/object/api/v1/file/upload", "/grid/api/v1/x")

TYPES = st.one_of(
    st.sampled_from(
        [
            "multipart/form-data",
            "multipart/form-data; boundary=",
            'multipart/form-data; boundary="',
            "multipart/form-data; boundary=x",
            "multipart/form-data; boundary=" + "x" * 200,
            "multipart/form-data; boundary=\u00e9",
            "application/x-www-form-urlencoded",
            "application/x-www-form-urlencoded; charset=none",
            "application/x-www-form-urlencoded; charset=idna",
            "multipart/mixed; boundary=x",
            "application/json",
            "/",
            ";;;=",
        ]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
)
PIECES = st.sampled_from(
    [
        b"--x",
        b"--",
        b"\r\n",
        b"\r\n\r\n",
        b"Content-Disposition: form-data; name=a",
        b'Content-Disposition: form-data; name="file"; filename="a\\"b.txt"',
        b"Content-Disposition: form-data; filename*=utf-8''%ff",
        b"Content-Type: multipart/mixed; boundary=x",
        b"Content-Type: text/plain; charset=idna",
        b"Content-Transfer-Encoding: base64",
        b"Content-Length: 5",
        b"data={",
        b"&a=%",
        b"\xff\xfe",
        b"\x00",
    ]
)
BODIES = st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=20).map(b"".join))


async def test_no_body_of_any_type_is_an_internal_error(rig: Rig) -> None:
    @settings(max_examples=200, deadline=None)
    @given(st.sampled_from(FORM_PATHS), TYPES, BODIES, st.sampled_from(["admin", "nobody"]))
    def ask(path: str, media_type: str, body: bytes, who: str) -> None:
        with closing(HTTPConnection(rig.addresses.http.removeprefix("http://"), timeout=10)) as connection:
            connection.request("POST", path, body, {"Content-Type": media_type, **bearer(rig, who)})
            with connection.getresponse() as response:
                answer = json.loads(response.read())
                assert response.status < 500, answer
                assert "internal error" not in answer["info"]

    await asyncio.to_thread(ask)


@pytest.mark.parametrize("media_type", ["multipart/form-data", "multipart/form-data; boundary="])
async def test_a_form_without_a_boundary_is_told_what_it_lacks(
    rig: Rig, media_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"Content-Type": media_type, **bearer(rig, "admin")}
    status, answer = await post(rig, "/api/send/send-email", b"x" * 512 * 1024, headers)
    assert (status, answer["code"]) == (400, 500)
    assert answer["info"] == "body: not a form: Content-Type: multipart/form-data has no boundary"
    assert [record for record in caplog.records if record.exc_info] == []


async def test_a_form_of_nobodys_is_not_buffered(rig: Rig) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    for path in ("/api/send/send-email", "/object/api/v1/file/upload"):
        status, answer = await post(rig, path, b"--x\r\n" + b"y" * 512 * 1024, headers)
        assert (status in (413, 200), answer["code"]) == (True, 10402)


async def test_fields_of_a_form_are_counted(rig: Rig) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", **bearer(rig, "admin")}
    status, answer = await post(rig, "/api/send/send-email", b"&".join([b"a=b"] * 1_001), headers)
    assert (status, answer["info"]) == (400, "body: not a form: it has more than 1000 fields")
