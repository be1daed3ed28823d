"""A gate before an InfluxDB: what the store asks passes it one by one, and can be stopped on either side."""

from __future__ import annotations

import asyncio
from typing import Self

import aiohttp
from aiohttp import web


class Gate:
    """Lets everything through until ``stop_at``: then the n-th request from now waits, or is answered 503.

    ``seen``: what passed or was stopped, like ``DELETE``, ``SELECT``, ``/write``.
    """

    def __init__(self, behind: str) -> None:
        self.behind = behind
        self.seen: list[str] = []
        self.is_writable = True
        """Whether writes pass; otherwise they are answered 503."""
        self.stopped = asyncio.Event()
        self._opened = asyncio.Event()
        self._at = -1
        self._is_after = False
        self._is_away = False
        self._answers = False

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = site.name
        self._http = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open()
        await self._http.close()
        await self._runner.cleanup()

    def stop_at(self, number: int, *, after: bool, answers: bool = False) -> None:
        """Stops the n-th request from now and all that follow.

        Args:
            after: it still reaches the server, its answer doesn't come back.
            answers: 503 at once instead of nothing.
        """
        self.seen.clear()
        self.stopped.clear()
        self._opened.clear()
        self._at, self._is_after, self._answers, self._is_away = number, after, answers, False

    def open(self) -> None:
        """Lets everything through again."""
        self._at, self._is_away = -1, False
        self._opened.set()

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        text = f"{request.query.get('q', '')}{body.decode()}".removeprefix("q=")
        self.seen.append(text.split("+")[0].split(" ")[0] if request.path == "/query" else request.path)
        if request.path == "/write" and not self.is_writable:
            return web.Response(status=503)
        is_last = len(self.seen) == self._at
        if is_last:
            self._is_away = True
        if self._is_away and not (is_last and self._is_after):
            return await self._stop()
        kind = {"Content-Type": request.headers.get("Content-Type", "text/plain")}
        async with self._http.request(request.method, self.behind + request.path_qs, data=body, headers=kind) as answer:
            content, headers = await answer.read(), {"X-Influxdb-Version": answer.headers["X-Influxdb-Version"]}
        if is_last:
            return await self._stop()
        return web.Response(status=answer.status, body=content, headers=headers)

    async def _stop(self) -> web.Response:
        self.stopped.set()
        if not self._answers:
            await self._opened.wait()
        return web.Response(status=503)
