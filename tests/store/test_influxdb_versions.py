"""InfluxDB 2.x and 3: only 1.x can be installed here, so a front that answers as they do stands before a real 1.x.

The front makes up ``/ping`` and the part of 2.x's ``/api/v2`` that sets a bucket up, after their documentation; what
is written and asked goes through to the real server.
"""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp import web
from store_houses import InfluxHouse

from terrazzo.store import NotReplaceable, Record, Seen, StoreUnavailable

T0 = 1_700_000_000_000_000
RECORD = Record("g/T1/r", T0, b'{"P":1}')


class Front:
    """Says it is ``version``; ``calls`` has what was asked of it beyond reading and writing."""

    def __init__(self, behind: str, version: str) -> None:
        self.behind = behind
        self.version = version
        self.calls: list[tuple[str, str, object]] = []
        self.tokens: set[str] = set()
        self.buckets: list[dict[str, str]] = []
        self.mappings: list[dict[str, object]] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/ping", self.ping)
        app.router.add_route("*", "/write", self.through)
        app.router.add_route("*", "/query", self.through)
        app.router.add_get("/api/v2/orgs", self.orgs)
        app.router.add_route("*", "/api/v2/buckets", self.bucket)
        app.router.add_route("*", "/api/v2/dbrps", self.mapping)
        return app

    async def ping(self, request: web.Request) -> web.Response:
        if self.version.startswith("3"):
            return web.json_response({"version": self.version, "revision": "x"})
        return web.Response(status=204, headers={"X-Influxdb-Version": f"v{self.version}"})

    async def through(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization", ""))
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method,
                self.behind + request.path_qs,
                data=await request.read(),
                headers={"Content-Type": request.content_type},
            ) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read())

    async def orgs(self, request: web.Request) -> web.Response:
        known = [{"id": "0123456789abcdef", "name": "acme"}] if request.query.get("org") == "acme" else []
        return web.json_response({"orgs": known})

    async def bucket(self, request: web.Request) -> web.Response:
        return await self._list_or_add(request, "buckets", self.buckets)

    async def mapping(self, request: web.Request) -> web.Response:
        return await self._list_or_add(request, "content", self.mappings)

    async def _list_or_add(self, request: web.Request, name: str, known: list) -> web.Response:
        if request.method == "GET":
            return web.json_response({name: known})
        wanted = await request.json()
        self.calls.append((request.method, request.path, wanted))
        known.append({**wanted, "id": f"{len(known):016x}"})
        return web.json_response(known[-1], status=201)


@pytest.fixture
async def front(request, influxd):
    front = Front(influxd.url, request.param)
    runner = web.AppRunner(front.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    front.url = site.name
    yield front
    await runner.cleanup()


@pytest.mark.parametrize("front", ["2.7.1"], indirect=True)
async def test_a_2x_bucket_is_made_and_mapped_once(front, influxd, tmp_path):
    database = tmp_path.name
    influxd.query(f'CREATE DATABASE "{database}"')
    for round_ in range(2):
        store = await InfluxHouse(front.url, database, tmp_path).open(token="secret", org="acme", bucket="terrazzo")
        await store.append([RECORD])
        assert (await store.page(["g/T1/r"], T0, T0, offset=0, limit=9)).total == round_ + 1
        await store.drop_before(T0)
        mosaic = Record("m/1", T0, b'{"A":%d}' % round_)
        assert store.is_replaceable
        assert await store.replace("m/1", T0, T0, [mosaic], given=Seen(["g/T1/r"], round_ + 1))
        assert await store.latest(["m/1"], 9) == [mosaic]
        await store.close()
    [(_, bucket_path, bucket), (_, mapping_path, mapping)] = front.calls
    assert bucket_path == "/api/v2/buckets"
    assert (bucket["name"], bucket["orgID"]) == ("terrazzo", "0123456789abcdef")
    assert mapping_path == "/api/v2/dbrps"
    assert (mapping["database"], mapping["bucketID"], mapping["default"]) == (database, "0" * 16, True)
    assert front.tokens == {"Token secret"}


@pytest.mark.parametrize("front", ["2.7.1"], indirect=True)
async def test_an_unknown_organisation_is_named(front, tmp_path):
    store = await InfluxHouse(front.url, "db", tmp_path).open(token="secret", org="nobody", bucket="b")
    with pytest.raises(StoreUnavailable, match="no organisation 'nobody'"):
        await store.check()
    await store.close()


@pytest.mark.parametrize("front", ["3.0.1"], indirect=True)
async def test_3_takes_records_and_says_that_it_cant_delete_or_replace(front, influxd, tmp_path):
    database = tmp_path.name
    influxd.query(f'CREATE DATABASE "{database}"')
    store = await InfluxHouse(front.url, database, tmp_path).open(token="secret")
    await store.append([RECORD])
    assert await store.latest(["g/T1/r"], 9) == [RECORD]
    with pytest.raises(StoreUnavailable, match="InfluxDB 3 has no DELETE"):
        await store.drop_before(T0 + 1)
    assert not store.is_replaceable
    with pytest.raises(NotReplaceable, match="InfluxDB 3 has no DELETE"):
        await store.replace("g/T1/r", 0, T0, [], given=Seen(["g/T1/r"], 1))
    assert await store.latest(["g/T1/r"], 9) == [RECORD]
    await store.close()
