"""A mapping that is tried costs nobody else's time, whatever its rows and payloads are."""

from __future__ import annotations

import asyncio
import signal
import time
from subprocess import Popen
from typing import Any

import pytest

from terrazzo.errors import BadParameter, Throttled
from terrazzo.mapping import trials
from terrazzo.mapping.catalogue import MappingLimits
from terrazzo.mapping.dry_run import Sample
from terrazzo.mapping.trial_process import TrialRequest
from terrazzo.mapping.trials import MappingTrials
from waiting import until

ROWS = [["A", "", "", "STA", "t1.a", "x * 2"], ["E", "", "", "EVNT", "", "", "A > 10"]]


def request(rows: Any, *payloads: dict[str, Any], count: int = 1) -> TrialRequest:
    samples = [Sample("t1", points, number + 1) for number, points in enumerate(payloads * count)]
    return TrialRequest(rows, ["t1"], samples, MappingLimits())


def long_rows(count: int) -> list[list[str]]:
    expression = " + ".join(f"x * {number}" for number in range(60))
    return [[f"V{number}", "", "", "STA", "t1.a", expression] for number in range(count)]


async def test_the_answer_is_the_same_wherever_it_was_tried(monkeypatch):
    at_once = await MappingTrials().run(1, request(ROWS, {"a": 1}, {"a": 6}, {"b": {"c": "text"}}))
    monkeypatch.setattr(trials, "_SMALL_SCRIPT", 0)
    apart = await MappingTrials().run(1, request(ROWS, {"a": 1}, {"a": 6}, {"b": {"c": "text"}}))
    assert apart == at_once
    assert at_once.records == [(1, {"A": 2}), (2, {"A": 12})]
    assert [each.code for each in apart.events] == ["E"]
    assert apart.variables == {"A": 12}


@pytest.mark.parametrize("small", [0, 100_000])
async def test_what_is_wrong_is_said_wherever_it_was_tried(monkeypatch, small: int):
    monkeypatch.setattr(trials, "_SMALL_SCRIPT", small)
    with pytest.raises(BadParameter, match="script: row 1, column 6"):
        await MappingTrials().run(1, request([["A", "", "", "STA", "t1.a", "x *"]], {"a": 1}))
    with pytest.raises(BadParameter, match=r"payloads: .*longer than 1024 characters"):
        await MappingTrials().run(1, request(ROWS, {"n" * 1_100: {"a": 1}}))


async def test_a_trial_that_takes_long_does_not_hold_the_loop():
    longest_s = 0.0
    trial = asyncio.ensure_future(MappingTrials().run(1, request(long_rows(75), {"a": 1}, {"a": 2}, count=100)))
    while not trial.done():
        started_s = time.thread_time()  # of this thread alone
        await asyncio.sleep(0.001)
        longest_s = max(longest_s, time.thread_time() - started_s)
    assert len((await trial).records) == 200
    assert longest_s < 0.04, "the answer is read; in the loop it took half a second"


async def test_a_long_answer_is_read_in_turns():
    """Seven megabytes in one go were 56 ms of the event loop."""
    rows = [[f"V{number}", "", "", "STA", "t1.a", ""] for number in range(60)]
    waiting = asyncio.ensure_future(
        MappingTrials().run(1, request(rows, {"a": "x" * 4_000}, {"a": "y" * 4_000}, count=14))
    )
    longest_s = 0.0
    while not waiting.done():
        started_s = time.thread_time()
        await asyncio.sleep(0.001)
        longest_s = max(longest_s, time.thread_time() - started_s)
    assert len((await waiting).records) == 28
    assert longest_s < 0.02


async def test_a_trial_beyond_its_time_is_refused(monkeypatch):
    with pytest.raises(BadParameter, match="takes over 4 s of a processor"):
        await MappingTrials().run(1, request(long_rows(400), {"a": 1}, {"a": 2}, count=20_000))


async def test_a_trial_ends_with_whoever_asked_for_it(monkeypatch):
    begun: list[Popen[bytes]] = []

    def noted(*command: Any, **options: Any) -> Popen[bytes]:
        begun.append(Popen(*command, **options))
        return begun[-1]

    monkeypatch.setattr(trials, "Popen", noted)
    tried = MappingTrials()
    trial = asyncio.create_task(tried.run(1, request(long_rows(400), {"a": 1}, {"a": 2}, count=20_000)))
    await until(lambda: begun, "its process is there")
    trial.cancel()
    await asyncio.wait({trial})
    assert trial.cancelled()
    await until(lambda: begun[0].returncode == -signal.SIGKILL, "its process has ended")
    assert (await tried.run(1, request(long_rows(30), {"a": 1}))).records, "the company has its turn"


async def test_an_answer_beyond_its_size_is_refused():
    rows = [[f"V{number}", "", "", "STA", "t1.a", ""] for number in range(200)]
    with pytest.raises(BadParameter, match=r"payloads: they make .* bytes of records and events"):
        await MappingTrials().run(1, request(rows, {"a": "x" * 4_000}, {"a": "y" * 4_000}, count=10))


async def test_a_company_has_one_at_a_time_and_few_that_wait():
    tried = MappingTrials()
    of_one = [asyncio.ensure_future(tried.run(1, request(long_rows(30), {"a": 1}))) for _ in range(8)]
    other = asyncio.ensure_future(tried.run(2, request(long_rows(30), {"a": 1})))
    await other
    assert not all(each.done() for each in of_one), "another company's doesn't wait for them"
    found = await asyncio.gather(*of_one, return_exceptions=True)
    assert sum(isinstance(each, Throttled) for each in found) == 3
    assert sum(not isinstance(each, BaseException) for each in found) == 5
