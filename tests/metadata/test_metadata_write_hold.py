"""Nobody writes while a copy of the database begins."""

from __future__ import annotations

import asyncio

import pytest

from terrazzo.database.write_hold import WriteHold
from terrazzo.errors import Unavailable


async def test_who_writes_ends_first_and_others_wait():
    hold, said = WriteHold(), []

    async def write(name, until):
        async with hold.writing():
            said.append(f"{name} begins")
            await until.wait()
            said.append(f"{name} ends")

    first_may_end, second_may_end = asyncio.Event(), asyncio.Event()
    second_may_end.set()
    first = asyncio.create_task(write("first", first_may_end))
    await asyncio.sleep(0)

    async def copy():
        async with hold.held():
            said.append("held")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            said.append("let go")

    copying = asyncio.create_task(copy())
    await asyncio.sleep(0)
    second = asyncio.create_task(write("second", second_may_end))
    await asyncio.sleep(0)
    first_may_end.set()
    await asyncio.gather(first, copying, second)
    assert said == ["first begins", "first ends", "held", "let go", "second begins", "second ends"]


async def test_it_gives_up_on_a_transaction_that_does_not_end():
    hold = WriteHold()
    async with hold.writing():
        with pytest.raises(Unavailable, match=r"a change took longer than 0\.01 s"):
            async with hold.held(0.01):
                pass
    async with hold.held(0.01):
        pass
    async with hold.writing():
        pass


async def test_one_holds_at_a_time():
    hold = WriteHold()
    async with hold.held():
        with pytest.raises(Unavailable, match="held already"):
            async with hold.held():
                pass
