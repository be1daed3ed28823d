"""When a terminal was last seen is known after a restart, of its own record alone."""

from __future__ import annotations

from pathlib import Path

from platform_site import peers, running_site
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.terminals.last_seen import LastSeenFile


def registry_with(**ids: int) -> Registry:
    registry = Registry()
    for uid, record_id in ids.items():
        registry.put_terminal(
            Terminal(id=record_id, uid=uid, name=uid, company_id=1, type="Other", mode="pwd", username=uid, pin="pin")
        )
    return registry


def times(path: Path, **ids: int) -> dict[int, int]:
    file = LastSeenFile(path, registry_with(**ids))
    file.close()
    return dict(file.items())


def test_the_last_line_of_a_record_counts_and_records_that_are_gone_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "last-seen"
    file = LastSeenFile(path, registry_with(t1=1, t2=2, t3=3))
    for record_id, time_us in ((1, 10), (2, 20), (1, 30), (3, 40)):
        file.note(record_id, time_us)
    file.forget(3)
    file.close()
    with path.open("a") as lines:
        lines.write("not a line\n7\n1 x\n" + "9" * 100 + " 1\n5 50\ntorn")
    assert times(path, t1=1, t2=2) == {1: 30, 2: 20}
    assert times(path, t2=2, t3=9) == {2: 20}
    assert path.read_text() == "2 20\n"


async def test_a_restart_remembers_it(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site, peers(site) as peer:
        company = await site.company()
        await company.terminal("t1")
        await company.terminal("t2")
        assert await peer("t1").connect() == 0
        seen_us = site.presence.last_seen_us("t1")
        assert seen_us is not None
    async with running_site(tmp_path) as site:
        again_us = site.presence.last_seen_us("t1")
        assert again_us is not None
        assert again_us >= seen_us
        assert site.presence.last_seen_us("t2") is None
        presence = site.presence.presence("t1")
        assert (presence.online, presence.last_seen_us) == (False, again_us)
