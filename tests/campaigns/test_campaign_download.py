"""Stored firmware over HTTP: signed addresses, byte ranges and conditions, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import pytest_asyncio

from api.api_rig import Rig, open_rig
from terrazzo.api.transports.byte_ranges import ByteRange, choose_range
from terrazzo.campaigns.download_links import SignedLinks
from terrazzo.domain.actor import SYSTEM
from terrazzo.errors import BadParameter

CONTENT = bytes(range(256)) * 40


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        await opened.add_terminal("t1")
        yield opened


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """One for the tests that change nothing but what files there are."""
    async with open_rig(tmp_path_factory.mktemp("shared")) as opened:
        await opened.add_terminal("t1")
        yield opened


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def address(rig: Rig, name: str = "lua-3.0.0.bin") -> str:
    """The signed path and query for terminal t1."""
    row = await rig.services.files.add(SYSTEM, name, pieces(CONTENT))
    links, terminal = rig.services.firmware, rig.services.registry.terminal("t1")
    assert isinstance(links, SignedLinks)
    assert terminal is not None
    return (await links.link(terminal, row["uid"])).url.removeprefix(rig.addresses.http)


@IN_MODULE
async def test_it_is_fetched_whole_and_in_parts(shared: Rig) -> None:
    path = await address(shared)
    assert urlsplit(path).path.endswith("/lua-3.0.0.bin")
    async with shared.http.get(path) as response:
        assert (response.status, await response.read()) == (200, CONTENT)
        etag = response.headers["ETag"]
        assert response.headers["Accept-Ranges"] == "bytes"
    async with shared.http.get(path, headers={"Range": "bytes=100-199", "If-Range": etag}) as response:
        assert (response.status, await response.read()) == (206, CONTENT[100:200])
        assert response.headers["Content-Range"] == f"bytes 100-199/{len(CONTENT)}"
    async with shared.http.get(path, headers={"Range": "bytes=100-199", "If-Range": '"other"'}) as response:
        assert (response.status, await response.read()) == (200, CONTENT)
    async with shared.http.get(path, headers={"Range": f"bytes={len(CONTENT)}-"}) as response:
        assert (response.status, await response.read()) == (416, b"")
        assert response.headers["Content-Range"] == f"bytes */{len(CONTENT)}"
    async with shared.http.get(path, headers={"If-None-Match": etag}) as response:
        assert (response.status, await response.read()) == (304, b"")
    async with shared.http.head(path) as response:
        assert (response.status, response.headers["Content-Length"]) == (200, str(len(CONTENT)))
        assert response.headers["ETag"] == etag


@IN_MODULE
@pytest.mark.parametrize("part", ["signature", "expires", "terminal", "company", "file", "name"])
async def test_whatever_is_changed_the_signature_is_wrong(shared: Rig, part: str) -> None:
    path = await address(shared)
    whole = urlsplit(path)
    query = {name: values[0] for name, values in parse_qs(whole.query).items()}
    _, _, company, file, name = whole.path.split("/")
    match part:
        case "company":
            company = "2"
        case "file":
            file = "0" * 32
        case "name":
            name = "other.bin"
        case "expires":
            query["expires"] = str(int(query["expires"]) + 1)
        case _:
            query[part] = "0" * 64
    async with shared.http.get(f"/firmware/{company}/{file}/{name}", params=query) as response:
        answer = await response.json()
    assert (response.status, answer["code"], answer["info"]) == (403, 10403, "signature: wrong")


@IN_MODULE
@pytest.mark.parametrize("query", ["", "expires=x&signature=y", "terminal=%ff&expires=1&signature=%ff"])
async def test_no_signature_is_a_wrong_one(shared: Rig, query: str) -> None:
    path = urlsplit(await address(shared)).path
    async with shared.http.get(f"{path}?{query}") as response:
        assert (response.status, (await response.json())["code"]) == (403, 10403)


@IN_MODULE
async def test_an_expired_address(shared: Rig) -> None:
    links, terminal = shared.services.firmware, shared.services.registry.terminal("t1")
    assert isinstance(links, SignedLinks)
    old = SignedLinks(
        links._files, key=links._key, base_url="", lifetime_s=-1, terminal=shared.services.registry.terminal
    )
    row = await shared.services.files.add(SYSTEM, "a.bin", pieces(CONTENT))
    assert terminal is not None
    async with shared.http.get((await old.link(terminal, row["uid"])).url) as response:
        answer = await response.json()
    assert (response.status, answer["code"], answer["info"]) == (403, 10403, "expires: the address has expired")


async def status_of(rig: Rig, path: str) -> int:
    async with rig.http.get(path) as response:
        await response.read()
        return response.status


async def test_an_address_is_its_terminals_while_that_is_let_in(rig: Rig) -> None:
    """Disabled, deleted, another company's by now, or of a company that was closed: the address is good no more."""
    path, call = await address(rig), rig.call
    fields = await call("get_terminal_item", uid="t1")
    await call("update_terminal", **{**fields, "is_available": 0})
    assert await status_of(rig, path) == 403
    await call("update_terminal", **{**fields, "is_available": 1})
    assert await status_of(rig, path) == 200
    heard: list[tuple[str, str]] = []
    links = rig.services.firmware
    assert isinstance(links, SignedLinks)
    links.downloads.listen(lambda uid, file: heard.append((uid, file)))
    await call("delete_terminal", uid="t1")
    assert await status_of(rig, path) == 403
    await rig.add_terminal("t1", "stranger")
    assert await status_of(rig, path) == 403
    assert heard == [], "campaigns of the next owner hear of no download"
    theirs = (await call("get_company_list", "root", where_and=[["name", "=", "other"]]))["data"][0]
    row = await rig.services.files.add(rig.services.tokens.verify(rig.tokens["stranger"]), "b.bin", pieces(CONTENT))
    terminal = rig.services.registry.terminal("t1")
    assert terminal is not None
    path = (await links.link(terminal, row["uid"])).url.removeprefix(rig.addresses.http)
    assert await status_of(rig, path) == 200
    await rig.services.entities.companies.update(SYSTEM, theirs["id"], {"is_available": 0})
    assert await status_of(rig, path) == 403


@IN_MODULE
@pytest.mark.parametrize("path", ["../../../etc/passwd", "%2e%2e/%2e%2e/x", "..%2f..%2fadmin-password", "a/b/c/d"])
async def test_no_path_leads_out_of_the_store(shared: Rig, path: str) -> None:
    for name in (path, quote(path, safe="")):
        async with shared.http.get(
            f"/firmware/1/{name}/x?terminal=t1&expires=9999999999&signature={'0' * 64}"
        ) as response:
            assert response.status in (403, 404)
            assert b"root:" not in await response.read()


async def test_a_file_that_is_not_there(rig: Rig) -> None:
    terminal = rig.services.registry.terminal("t1")
    links = rig.services.firmware
    assert isinstance(links, SignedLinks)
    assert terminal is not None
    with pytest.raises(BadParameter, match="the platform has no file"):
        await links.link(terminal, "0" * 32)
    assert await links.link(terminal, "http://files.example/a.bin") == ("http://files.example/a.bin", None, "")
    path = await address(rig)
    await rig.services.files.remove(SYSTEM, urlsplit(path).path.split("/")[3])
    async with rig.http.get(path) as response:
        assert (response.status, (await response.json())["code"]) == (404, 10404)


@IN_MODULE
async def test_other_methods_are_refused(shared: Rig) -> None:
    path = await address(shared)
    async with shared.http.post(path) as response:
        assert (response.status, (await response.json())["code"]) == (405, 10401)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes=0-0", ByteRange(206, 0, 1)),
        ("bytes=5-", ByteRange(206, 5, 10)),
        ("bytes=-3", ByteRange(206, 7, 10)),
        ("bytes=-30", ByteRange(206, 0, 10)),
        ("bytes=8-99", ByteRange(206, 8, 10)),
        ("bytes=10-", ByteRange(416, 0, 0)),
        ("bytes=-0", ByteRange(416, 0, 0)),
        ("bytes=5-4", ByteRange(200, 0, 10)),
        ("bytes=-", ByteRange(200, 0, 10)),
        ("bytes=0-1,3-4", ByteRange(200, 0, 10)),
        ("lines=0-1", ByteRange(200, 0, 10)),
        ("", ByteRange(200, 0, 10)),
    ],
)
def test_ranges(text: str, expected: ByteRange) -> None:
    assert choose_range({"Range": text}, size=10, etag="e") == expected
    assert choose_range({"Range": text}, size=10, etag="e", method="HEAD") == ByteRange(200, 0, 10)


@pytest.mark.parametrize("text", ['"e"', 'W/"e"', '"a", "e"', "*"])
def test_what_the_client_has_is_not_sent(text: str) -> None:
    assert choose_range({"If-None-Match": text}, size=10, etag="e").status == 304
    assert choose_range({"If-None-Match": text}, size=10, etag="f").status == (304 if text == "*" else 200)
