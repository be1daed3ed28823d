"""The same packets to this broker and to others: what they answer differs where docs/conformance.md says so, only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from differential import OURS, Outcome, brokers, compare_all, differ
from differential_compare import compare, shown
from differential_known import ALLOWED, AMQTT, EXPLAINED, MOSQUITTO
from differential_play import play
from differential_steps import MALFORMED, MALFORMED_FIRST, Step, sequence

from support import require_program

DOCUMENT = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
SEEDS = [str(number) for number in range(40)]
FEW_SEEDS = [str(number) for number in range(100, 112)]  # amqtt takes one sequence at a time
TOLD = ("CONNACK", 0, False)


@pytest.fixture(scope="module")
def with_mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    require_program("mosquitto")
    with brokers(tmp_path_factory.mktemp("mosquitto"), [MOSQUITTO]) as ports:
        yield ports


@pytest.fixture(scope="module")
def with_amqtt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    with brokers(tmp_path_factory.mktemp("amqtt"), [AMQTT]) as ports:
        yield ports


def report(outcome: Outcome) -> str:
    """Empty where nothing differs that isn't known."""
    return "\n".join(f"seed {seed}:\n{shown(moment)}" for seed, moment in outcome.unknown)


def malformed(name: str, version: int, *, first: bool) -> list[Step]:
    """A connection that says it, and one that looks on."""
    looker = Step("b", "connect", {"version": 4, "clean": True, "acknowledges": True})
    if first:
        return [looker, Step("a", "malformed_first", {"version": version, "name": name})]
    speaker = Step("a", "connect", {"version": version, "clean": True, "acknowledges": True})
    return [looker, speaker, Step("a", "malformed", {"name": name})]


async def test_random_sequences_beside_mosquitto(with_mosquitto):
    outcome = await compare_all(with_mosquitto, iter(SEEDS), waits=False)
    assert report(outcome) == ""
    assert outcome.sequences == len(SEEDS)
    assert outcome.steps[MOSQUITTO] > 8 * len(SEEDS), "most of each sequence is compared"


async def test_random_sequences_beside_amqtt(with_amqtt):
    outcome = await compare_all(with_amqtt, iter(FEW_SEEDS), waits=False)
    assert report(outcome) == ""
    assert outcome.steps[AMQTT] > len(FEW_SEEDS)


async def test_each_malformed_packet_beside_mosquitto(with_mosquitto):
    outcome = Outcome()
    for table, first in ((MALFORMED, False), (MALFORMED_FIRST, True)):
        for name, (versions, _) in table.items():
            for version in versions:
                found = await differ(with_mosquitto, MOSQUITTO, malformed(name, version, first=first))
                outcome.add(f"{name}, version {version}", MOSQUITTO, found)
    assert report(outcome) == ""


async def test_a_message_that_is_not_passed_on_is_a_difference(with_mosquitto):
    options = {"version": 4, "clean": True, "acknowledges": True}
    steps = [
        Step("a", "connect", options),
        Step("a", "subscribe", {"packet_id": 1, "filters": [("t/+", 1)]}),
        Step("a", "publish", {"topic": "t/u", "payload": b"m", "qos": 1, "packet_id": 2, "retain": False}),
    ]
    heard = await play(with_mosquitto[OURS], steps, quiet_s=0.0)
    assert heard[2] == {"a": [("PUBACK", 2, 0), ("PUBLISH", "t/u", b"m", 1, "", ())]}
    lost = [*heard[:2], {"a": [("PUBACK", 2, 0)]}]
    found = compare(MOSQUITTO, steps, lost, heard)
    assert found.unknown is not None
    assert "t/u" in shown(found.unknown)
    assert compare(MOSQUITTO, steps, heard, heard).unknown is None


def test_another_answer_to_connect_is_a_difference():
    steps = [Step("a", "connect", {"version": 5, "clean": True, "acknowledges": True})]
    for other in ([("CONNACK", 0, True)], [("CONNACK", 0x87, False), ("closed",)], [], [("ill-formed", "20", "")]):
        assert compare(MOSQUITTO, steps, [{"a": other}], [{"a": [TOLD]}]).unknown is not None


def test_a_seed_is_one_sequence():
    assert sequence("7", waits=True) == sequence("7", waits=True)
    assert sequence("7") != sequence("8")


def test_each_known_difference_is_documented():
    section = DOCUMENT.split("\n## Beside other brokers\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    assert sorted({*rows} - {"difference", "---"}) == sorted({*ALLOWED, *EXPLAINED})
