"""The HTTP port of a node that stands by: silent sockets take neither it nor the process's descriptors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import aiohttp
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from own_platform import config_in
from support import free_port
from terrazzo.runtime.standby_page import MOST_CONNECTIONS, StandbyPage
from waiting import close


class Figures(Collector):
    """What the node would have to say."""

    def collect(self) -> Iterable[Metric]:
        return (GaugeMetricFamily("terrazzo_cluster_waits", "x", value=1),)


async def test_silent_sockets_make_room(tmp_path: Path) -> None:
    port = free_port()
    page = StandbyPage(config_in(tmp_path, http={"port": port}), lambda: "another node leads", Figures())
    await page.start()
    silent = []
    try:
        for _ in range(3 * MOST_CONNECTIONS):
            silent.append(await asyncio.open_connection("127.0.0.1", port))
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            for path, status in (("/healthz", 200), ("/readyz", 503), ("/metrics", 200), ("/x", 503)):
                async with client.get(path) as answer:
                    assert answer.status == status
        async with asyncio.timeout(15):
            ended = [await reader.read() for reader, _ in silent[:MOST_CONNECTIONS]]  # those that came first
        assert ended == [b""] * MOST_CONNECTIONS
        assert not silent[-1][0].at_eof()
    finally:
        for _, writer in silent:
            await close(writer)
        await page.stop()
    first = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)  # the platform has the port now
    first.close()
    await first.wait_closed()
