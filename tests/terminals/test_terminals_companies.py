"""Reports stay within their company: a terminal that may subscribe to everything sees only its own company's."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_site import peers, running_site


@pytest.mark.parametrize("pattern", ["g/#", "$share/all/g/#"])
async def test_a_wide_subscription_ends_at_the_company(tmp_path: Path, pattern: str) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        for company, name in ((ours, "ours"), (theirs, "theirs")):
            await company.terminal(f"{name}-reader", topic="pub:r;sub:g/#")
            await company.terminal(f"{name}-writer")
        readers = {name: make(f"{name}-reader") for name in ("ours", "theirs")}
        for reader in readers.values():
            await reader.connect()
            assert await reader.subscribe(pattern) == 1
        for name in ("ours", "theirs"):
            writer = make(f"{name}-writer")
            await writer.connect()
            for number in range(4):
                await writer.publish("g/r", b'{"n": %d}' % number)
        for name, reader in readers.items():
            await reader.received(4)
            topics = {message.topic for message in reader.messages}
            assert topics == {f"g/{name}-writer/r"}


async def test_what_is_retained_stays_within_the_company_too(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as make:
        ours, theirs = await site.company("ours"), await site.company("theirs")
        await ours.terminal("writer")
        await ours.terminal("ours-reader", topic="pub:r;sub:g/#")
        await theirs.terminal("theirs-reader", topic="pub:r;sub:g/#")
        writer = make("writer")
        await writer.connect()
        info = writer.client.publish("g/writer/r", b'{"n": 1}', 1, retain=True)
        info.wait_for_publish(10)
        for uid, expected in (("ours-reader", ["g/writer/r"]), ("theirs-reader", [])):
            reader = make(uid)
            await reader.connect()
            await reader.subscribe("g/#")
            await reader.publish("g/r", b'{"n": 2}')
            await reader.received(len(expected) + 1)
            assert [message.topic for message in reader.messages] == [*expected, f"g/{uid}/r"]
