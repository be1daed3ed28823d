"""Live over WebSocket: frames as they happen, over lost connections, renewed tokens and restarts; gaps are said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from running import PASSWORD, Platform
from support import free_port
from terrazzo.client import ActionError, AsyncClient, Frame, Gap, NotSent
from waiting import close

CREDENTIALS = {"username": "admin", "password": PASSWORD}


class Relay:
    """Stands between a client and the platform, and can cut every connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, there}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, there), name="to the platform")
                group.create_task(self._pump(there_reader, writer), name="to the client")
        finally:
            self._writers -= {writer, there}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            await close(writer)

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def relay(platform: Platform) -> AsyncIterator[tuple[Relay, str]]:
    it = Relay(platform.http)
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    try:
        yield it, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        it.cut()


async def next_of(frames: AsyncIterator[Any]) -> Any:
    return await asyncio.wait_for(anext(frames), 20)


async def order(platform: Platform, value: int) -> None:
    """Something that happens: a command for a terminal."""
    await asyncio.to_thread(platform.call, "publish_terminal_command", terminal_id="t1", command="SP1", value=value)


async def first_frame(platform: Platform, frames: AsyncIterator[Any]) -> Frame:
    """Orders until the subscription is there to tell of it."""
    waiting = asyncio.ensure_future(next_of(frames))
    while not waiting.done():
        await order(platform, 0)
        await asyncio.wait({waiting}, timeout=0.1)
    frame = waiting.result()
    assert isinstance(frame, Frame)
    return frame


async def values_until(frames: AsyncIterator[Any], last: int) -> list[int]:
    """The values of the commands that frames tell of, each once."""
    found: list[int] = []
    while not found or found[-1] != last:
        frame = await next_of(frames)
        assert isinstance(frame, Frame), frame
        assert frame.kind == "command"
        found += [] if int(frame.data["value"]) in found else [int(frame.data["value"])]
    return found


async def test_frames_go_on_after_a_lost_connection(platform: Platform) -> None:
    async with relay(platform) as (between, url), AsyncClient(url, **CREDENTIALS) as client:
        frames = client.live(["command"], terminal_id="t1")
        await first_frame(platform, frames)
        await order(platform, 1)
        await values_until(frames, 1)
        between.cut()
        for value in (2, 3, 4):
            await order(platform, value)
        assert await values_until(frames, 4) == [2, 3, 4], "what happened meanwhile is there, once and in order"
        await frames.aclose()


async def test_another_client_goes_on_where_one_stopped(platform: Platform) -> None:
    async with AsyncClient(platform.url, **CREDENTIALS) as client:
        frames = client.live(["command"], terminal_id="t1")
        seen = await first_frame(platform, frames)
        await frames.aclose()
        await order(platform, 11)
        again = client.live(["command"], terminal_id="t1", since=seen.seq)
        assert 11 in await values_until(again, 11)
        await again.aclose()


async def test_a_token_that_ends_is_renewed(platform: Platform) -> None:
    async with AsyncClient(platform.url, **CREDENTIALS) as client:
        frames = client.live(["command"])
        await first_frame(platform, frames)
        old = client.session.token
        async with AsyncClient(platform.url, token=old) as other:
            await other.logout()
        await order(platform, 21)
        assert 21 in await values_until(frames, 21)
        await order(platform, 22)
        assert 22 in await values_until(frames, 22)
        await frames.aclose()


async def test_a_restart_is_a_gap(tmp_path: Path) -> None:
    with Platform(tmp_path / "data") as platform:
        platform.login().add_terminal("t1", platform.add_config())
        async with AsyncClient(platform.url, **CREDENTIALS) as client:
            frames = client.live(["command"])
            seen = await first_frame(platform, frames)
            await asyncio.to_thread(platform.stop)
            with await asyncio.to_thread(platform.again) as after:
                after.login()
                found = [await next_of(frames)]
                while isinstance(found[-1], Frame):
                    found.append(await next_of(frames))
                assert isinstance(found[-1], Gap)
                assert found[-1].reason == "restart"
                assert found[-1].since >= seen.seq
                await order(after, 31)
                assert 31 in await values_until(frames, 31)
                await frames.aclose()


async def test_what_can_not_be_is_refused(platform: Platform) -> None:
    async with AsyncClient(platform.url, **CREDENTIALS) as client:
        with pytest.raises(ActionError, match="kinds") as error:
            await next_of(client.live(["nonsense"]))
        assert error.value.code == 10401
        with pytest.raises(ActionError, match="terminal_id"):
            await next_of(client.live(["grid"], terminal_id="nobody"))
    async with AsyncClient(platform.url, token="bad") as client:
        with pytest.raises(ActionError) as error:
            await next_of(client.live(["grid"]))
        assert error.value.code == 10402
    async with AsyncClient(f"http://127.0.0.1:{free_port()}", token="x") as client:
        with pytest.raises(NotSent):
            await next_of(client.live(["grid"]))
