"""The least that aiohttp can do: ``python benchmarks/empty_server.py PORT`` answers every POST with ``{}``."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

from terrazzo.runtime.process import new_event_loop


async def answer(request: web.Request) -> web.Response:
    return web.Response(body=b"{}", content_type="application/json")


async def serve(port: int) -> None:
    app = web.Application()
    app.router.add_post("/apiproxy/api", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as loop:
        loop.run(serve(int(sys.argv[1])))
