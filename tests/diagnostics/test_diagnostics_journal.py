"""The journal of refusals: what it counts, tells, keeps over restarts, and what a flood costs."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support import new_tasks
from terrazzo.diagnostics import journal as journal_module
from terrazzo.diagnostics import refusal_file
from terrazzo.diagnostics.journal import MOST_TOUCHED, RefusalJournal
from terrazzo.diagnostics.refusal_file import RefusalFile, kept_in
from terrazzo.domain.refusals import reasons
from terrazzo.domain.refusals.entry import ToldRefusal
from terrazzo.domain.refusals.login_refused import LoginRefused
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo_broker.refusals import Cause, Refusal
from waiting import until

TERMINAL = Terminal(id=1, uid="t1", name="t", company_id=1, type="Other", mode="pwd", username="u", pin="pin")


class Clock:
    now_us = 1_780_000_000_000_000

    def __call__(self) -> int:
        self.now_us += 1
        return self.now_us


def registry_of(*terminals: Terminal) -> Registry:
    registry = Registry()
    for each in terminals:
        registry.put_terminal(each)
    return registry


def another(number: int, **changes: Any) -> Terminal:
    return msgspec.structs.replace(TERMINAL, id=number, uid=f"t{number}", **changes)


@asynccontextmanager
async def journal_on(registry: Registry, path: Path | None = None, most: int = 1_000) -> AsyncIterator[RefusalJournal]:
    """A journal that has started; nothing is told or written but by the test, until its stop."""
    file = None if path is None else RefusalFile(path)
    journal = RefusalJournal(registry, file, most=most, clock=Clock())
    tasks = new_tasks()
    await journal.start(tasks)
    await until(lambda: all(each.is_running for each in journal._running))
    await asyncio.sleep(0)  # each has had its first turn
    yield journal
    await journal.stop()
    await tasks.close()


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "TELL_S", 3_600.0)
    monkeypatch.setattr(journal_module, "WRITE_S", 3_600.0)


def refused(
    terminal: Terminal | None, reason: reasons.Reason = reasons.WRONG_PIN, address: str = "10.0.0.1", **more: Any
) -> LoginRefused:
    client_id = "nobody" if terminal is None else terminal.uid
    return LoginRefused(reason, client_id, "u", address, "tcp", 5, terminal, **more)


async def test_logins_and_what_the_broker_refuses_stand_in_one_list() -> None:
    async with journal_on(registry_of(TERMINAL)) as journal:
        journal.on_login_refused(refused(TERMINAL, reasons.CLOCK_OFF, is_proven=True, detail="its clock is 5 s behind"))
        journal.on_refusal(Refusal(Cause.PUBLISH_NOT_ALLOWED, "10.0.0.1", "t1", "1", 0x87, "g/x/r", 4))
        journal.on_refusal(Refusal(Cause.TOO_MANY_CONNECTIONS, "10.0.0.9", "t1", None, 0x97))
        found = [(each.reason, each.code, each.is_own, each.detail) for each in journal.of_terminal(1)]
        assert found == [
            ("too_many_connections", 0x97, False, ""),
            ("publish_not_allowed", 0x87, True, "g/x/r"),
            ("clock_off", 0x86, True, "its clock is 5 s behind"),
        ]
        assert {name: count for name, count in journal.stats.reasons.items() if count} == {
            "clock_off": 1,
            "publish_not_allowed": 1,
            "too_many_connections": 1,
        }


async def test_what_no_terminal_is_known_for_stands_at_its_address() -> None:
    async with journal_on(registry_of(TERMINAL)) as journal:
        journal.on_refusal(Refusal(Cause.TLS_FAILED, "2001:db8::1", detail="wrong version number"))
        journal.on_login_refused(refused(None, reasons.UNKNOWN_TERMINAL, "10.0.0.7"))
        assert [each.reason for each in journal.at_addresses(["2001:db8::ffff"])] == ["tls_failed"]  # one /64
        assert [each.reason for each in journal.at_addresses(["10.0.0.7", "", "2001:db8::1"])] == [
            "unknown_terminal",
            "tls_failed",
        ]
        assert journal.of_terminal(1) == []


async def test_a_session_of_the_uids_former_owner_is_not_the_new_owners() -> None:
    async with journal_on(registry_of(TERMINAL)) as journal:
        journal.on_refusal(Refusal(Cause.SESSION_EXPIRED, "", "t1", "2"))
        assert journal.of_terminal(1) == []
        assert journal.at_addresses([""]) == []
        journal.on_refusal(Refusal(Cause.SESSION_EXPIRED, "", "t1", "1"))
        assert [each.reason for each in journal.of_terminal(1)] == ["session_expired"]


async def test_text_of_peers_is_short_and_visible(caplog: pytest.LogCaptureFixture) -> None:
    async with journal_on(registry_of(TERMINAL)) as journal:
        journal.on_refusal(Refusal(Cause.PROTOCOL_ERROR, "10.0.0.1", "t1", "1", 0x82, "\x1b[31m\n" + "x" * 10_000))
        detail = journal.of_terminal(1)[0].detail
        assert detail.startswith("\\x1b[31m\\nxxx")
        assert len(detail) < 150
        journal.on_login_refused(LoginRefused(reasons.UNKNOWN_TERMINAL, "a\nb", "u", "10.0.0.1", "tcp", 5, None))
    assert "a\\nb from 10.0.0.1: no terminal" in caplog.text


async def test_the_log_has_a_line_of_each_reason_and_ordinary_ends_have_none(caplog: pytest.LogCaptureFixture) -> None:
    async with journal_on(registry_of(TERMINAL)) as journal:
        for _ in range(1_000):
            journal.on_login_refused(refused(TERMINAL))
            journal.on_refusal(Refusal(Cause.PUBLISH_NOT_ALLOWED, "10.0.0.1", "t1", "1", 0x87))
            journal.on_refusal(Refusal(Cause.KEEP_ALIVE_TIMEOUT, "10.0.0.1", "t1", "1", 0x8D))
    assert len(caplog.records) == 2


async def test_listeners_are_told_of_what_has_been_folded() -> None:
    told: list[ToldRefusal] = []
    async with journal_on(registry_of(TERMINAL)) as journal:
        journal.changes.listen(lambda some: told.extend(some))
        for _ in range(500):
            journal.on_login_refused(refused(TERMINAL))
            journal.on_login_refused(refused(None, reasons.UNKNOWN_TERMINAL))
        await journal.tell()
        assert [(each.terminal, each.entry.reason, each.entry.times) for each in told] == [
            (TERMINAL, "wrong_pin", 500),
            (None, "unknown_terminal", 500),
        ]
        told.clear()
        await journal.tell()
        assert told == []
        journal.on_login_refused(refused(TERMINAL))
        await journal.tell()
        assert [each.entry.times for each in told] == [501]


class TestRestart:
    async def test_they_are_kept(self, tmp_path: Path) -> None:
        path, registry = tmp_path / "refusals", registry_of(TERMINAL, another(2))
        async with journal_on(registry, path) as journal:
            for _ in range(3):
                journal.on_login_refused(refused(TERMINAL, is_known=True))
            journal.on_login_refused(refused(another(2), address="10.0.0.2"))
            journal.on_refusal(Refusal(Cause.TLS_FAILED, "10.0.0.3", detail="no TLS"))
            before = journal.of_terminal(1), journal.of_terminal(2), journal.at_addresses(["10.0.0.3"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with journal_on(registry, path) as journal:
            assert (journal.of_terminal(1), journal.of_terminal(2), journal.at_addresses(["10.0.0.3"])) == before
            journal.on_login_refused(refused(TERMINAL))
            assert journal.of_terminal(1)[0].times == 4

    @pytest.mark.parametrize("change", [None, {"company_id": 2}, {"id": 9}])
    async def test_deleted_moved_and_registered_anew_has_none(
        self, tmp_path: Path, change: dict[str, Any] | None
    ) -> None:
        registry, path = registry_of(TERMINAL), tmp_path / "refusals"
        async with journal_on(registry, path) as journal:
            journal.on_login_refused(refused(TERMINAL))
            await journal.write()
            registry.drop_terminal("t1") if change is None else registry.put_terminal(
                msgspec.structs.replace(TERMINAL, **change)
            )
            assert journal.of_terminal(1) == []
        assert kept_in(path) == []

    async def test_what_changed_while_it_was_away_is_not_taken_up(self, tmp_path: Path) -> None:
        path = tmp_path / "refusals"
        async with journal_on(registry_of(TERMINAL), path) as journal:
            journal.on_login_refused(refused(TERMINAL))
        for registry in (registry_of(), registry_of(msgspec.structs.replace(TERMINAL, company_id=2))):
            async with journal_on(registry, path) as journal:
                assert journal.of_terminal(1) == []

    async def test_what_is_being_written_at_the_stop_is_not_lost(self, tmp_path: Path) -> None:
        path = tmp_path / "refusals"
        async with journal_on(registry_of(TERMINAL), path) as journal:
            journal.on_login_refused(refused(TERMINAL))
            writing = asyncio.create_task(journal.write())
            await asyncio.sleep(0)
            writing.cancel()
            await asyncio.wait([writing])
        assert [each.terminal_id for each in kept_in(path)] == [1]

    async def test_torn_lines_are_passed_over(self, tmp_path: Path) -> None:
        path = tmp_path / "refusals"
        async with journal_on(registry_of(TERMINAL), path) as journal:
            journal.on_login_refused(refused(TERMINAL))
        whole = path.read_bytes()
        path.write_bytes(b'{"terminal_id": 1, "entr\n\xff\xfe\n[]\n' + whole + whole[: len(whole) // 2])
        async with journal_on(registry_of(TERMINAL), path) as journal:
            assert [each.reason for each in journal.of_terminal(1)] == ["wrong_pin"]

    async def test_a_full_disk_is_said_and_tried_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "refusals"
        async with journal_on(registry_of(TERMINAL), path) as journal:
            journal.on_login_refused(refused(TERMINAL))
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", _full)
                assert not await journal.write()
            assert journal.stats.write_failures == 1
            assert "No space left" in caplog.text
        assert [each.terminal_id for each in kept_in(path)] == [1]

    async def test_the_file_stays_short(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(refusal_file, "_SLACK_BYTES", 10_000)
        path = tmp_path / "refusals"
        async with journal_on(registry_of(TERMINAL), path) as journal:
            for _ in range(500):
                journal.on_login_refused(refused(TERMINAL))
                await journal.write()
                assert path.stat().st_size < 12_000
        assert kept_in(path)[0].entries[0].times == 500


def _full(*_arguments: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


class TestFlood:
    """Strangers guess: terminals of all companies, from everywhere."""

    async def test_it_costs_bounded_memory_and_little_time(self, tmp_path: Path) -> None:
        """Refusals of 2,000 terminals and as many uids that nobody has, three times as many as are kept of them."""
        known = [another(number, company_id=number % 7 + 1) for number in range(1, 2_001)]
        journal = RefusalJournal(registry_of(*known), RefusalFile(tmp_path / "refusals"), most=5_000)
        flood(journal, known, 30_000)
        tracemalloc.start()
        began = time.thread_time()
        flood(journal, known, 20_000)
        took_s = time.thread_time() - began
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert journal.stats.kept <= 5_000
        assert grown < 8 * 2**20, "what is kept is replaced, and does not get more"
        assert took_s < 10, "10,000 a second, though memory is traced"
        assert sum(journal.stats.reasons.values()) == 50_000
        assert len(journal._touched) <= MOST_TOUCHED
        assert journal.stats.untold > 0

    async def test_disk_and_listeners_get_batches(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        known = [another(number) for number in range(1, 101)]
        path, calls, write = tmp_path / "refusals", [], os.write
        async with journal_on(registry_of(*known), path, most=20_000) as journal:

            def counted(file: int, data: Any) -> int:
                calls.append(len(data))
                return write(file, data)

            monkeypatch.setattr(os, "write", counted)
            flood(journal, known, 10_000)
            assert calls == []
            assert await journal.write()
            assert len(calls) == 1


def flood(journal: RefusalJournal, known: list[Terminal], count: int) -> None:
    """Refused logins of known and unknown uids in turn, from thousands of addresses."""
    for number in range(count):
        terminal = known[number // 2 % len(known)] if number % 2 else None
        reason = reasons.UNKNOWN_TERMINAL if terminal is None else reasons.WRONG_PIN
        client_id = f"guess-{number}" if terminal is None else terminal.uid
        source = f"10.{number % 3}.{number % 251}.{number % 241}"
        journal.on_login_refused(LoginRefused(reason, client_id, "u", source, "tcp", 5, terminal))
