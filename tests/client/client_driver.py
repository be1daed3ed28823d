"""Both clients behind one face, so that each test says once what holds for the two."""

from __future__ import annotations

import asyncio
from typing import Any

from terrazzo.client import AsyncClient, Client


class Blocking:
    """The synchronous client; its calls leave the event loop, so that a server of the test can answer."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = Client(url, **options)

    async def do(self, method: str, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(getattr(self.client, method), *arguments, **options)

    async def walk(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        return await asyncio.to_thread(lambda: list(getattr(self.client, method)(*arguments, **options)))

    async def close(self) -> None:
        self.client.close()


class Asynchronous:
    """The one for asyncio."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = AsyncClient(url, **options)

    async def do(self, method: str, *arguments: Any, **options: Any) -> Any:
        return await getattr(self.client, method)(*arguments, **options)

    async def walk(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        return [each async for each in getattr(self.client, method)(*arguments, **options)]

    async def close(self) -> None:
        await self.client.close()


DRIVERS = (Blocking, Asynchronous)
