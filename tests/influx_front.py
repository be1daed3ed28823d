"""A front before a real InfluxDB 1.x that answers as 2.x or 3 would.

It makes up ``/ping`` and the part of 2.x's ``/api/v2`` that sets a bucket up, after their documentation; what is
written and asked goes through to the real server.
"""

from __future__ import annotations

from typing import Self

import aiohttp
from aiohttp import web


class Front:
    """Says it is ``version``; ``calls`` has what was asked of it beyond reading and writing."""

    def __init__(self, behind: str, version: str) -> None:
        self.behind = behind
        self.version = version
        self.calls: list[tuple[str, str, object]] = []
        self.tokens: set[str] = set()
        self.buckets: list[dict[str, str]] = []
        self.mappings: list[dict[str, object]] = []

    async def __aenter__(self) -> Self:
        self._runner = web.AppRunner(self.app())
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = site.name
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

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
