"""Exports that nobody reads: a company has so many at a time, and others have theirs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from api_rig import Rig

from terrazzo.ports.store import Record
from waiting import until

START = 1_770_000_000_000_000
BODY = b'{"s": "%s"}' % (b"x" * 50_000)


async def test_exports_of_a_company_take_turns_and_others_have_theirs(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.services.store.append([Record("g/t1/r", START + n, BODY) for n in range(400)])  # more than sockets take
    async with AsyncExitStack() as stack:
        for _ in range(4):
            response = await stack.enter_async_context(export(rig, "admin", "t1"))
            assert response.status == 200
        waiting = [asyncio.create_task(fetch(rig, "admin", "t1"), name="waits") for _ in range(16)]
        await until(lambda: len(rig.services.exports._waiting.get(1, ())) == 16, "sixteen wait")
        status, text = await fetch(rig, "admin", "t1")
        assert status == 429
        assert "exports: 16 of your company wait already" in text
        assert (await fetch(rig, "stranger", "t1"))[0] != 429, "another company's are not among them"
        for task in waiting[4:]:
            task.cancel()
    for task in waiting[:4]:
        status, text = await task
        assert (status, text.count("x" * 50_000)) == (200, 400)


def export(rig: Rig, who: str, uid: str) -> Any:
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    return rig.http.get(f"/export/grid/{uid}", headers=headers, params={"format": "jsonl"})


async def fetch(rig: Rig, who: str, uid: str) -> tuple[int, str]:
    async with export(rig, who, uid) as response:
        return response.status, await response.text()
