"""A data folder that a version before has left opens: it answers alike, nothing is lost, and work goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compared import differences
from data_questions import RULES, as_said_now, ask_all, without_now
from data_records import USERS
from data_server import ADMIN, Api, Server, wait_for
from data_terminals import NEVER_S, Terminal, auto_password, report_by_scram, unseal
from data_traffic import QUEUED
from make_data import KEPT, unpack

from open_stores import open_rocks, seal

VERSIONS = sorted(path.stem for path in KEPT.glob("*.json"))


class Opened:
    """A kept folder under the platform of today, and what it answered before anything else was asked of it."""

    def __init__(self, version: str, data: Path) -> None:
        kept = json.loads((KEPT / f"{version}.json").read_text(encoding="utf-8"))
        self.uids = kept["uids"]
        self.questions = [each["question"] for each in kept["asked"]]
        self.answers = [without_now(each["answer"]) for each in kept["asked"]]
        self.server = Server(None, data)
        self._apis: dict[str, Api] = {}
        try:
            self.found = self.ask()
        except BaseException:
            self.close()
            raise

    def ask(self) -> list[Any]:
        """The answers of now."""
        return ask_all(self.questions, self.api)

    def api(self, who: str) -> Api:
        """A user's requests; who has logged in stays so, restarts included."""
        if who not in self._apis:
            self._apis[who] = self.server.api(who, USERS[who])
        return self._apis[who]

    def restart(self) -> None:
        """The platform stops and starts in place."""
        self.close()
        self.server = self.server.again()

    def close(self) -> None:
        """Everybody hangs up, and the platform stops."""
        for api in self._apis.values():
            api.close()
        self.server.stop()

    def call(self, action: str, **fields: Any) -> Any:
        """The result of an administrator's action."""
        return self.api(ADMIN[0]).call(action, **fields)

    def said(self, before: list[Any], now: list[Any], *, without: tuple[str, ...] = ()) -> list[str]:
        """A line for each difference, below its question; ``without`` those whose text has one of these words."""
        lines = []
        for question, one, other in zip(self.questions, before, now, strict=True):
            text = json.dumps(question)
            if not any(word in text for word in without) and (found := differences(one, other)):
                lines += [json.dumps(question, ensure_ascii=False), *(f"    {line}" for line in found)]
        return lines


@pytest.fixture(scope="module", params=VERSIONS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Each kept folder in turn, opened once."""
    data = unpack(KEPT / f"{request.param}.tar.xz", tmp_path_factory.mktemp("opened") / "data")
    found = Opened(request.param, data)
    yield found
    found.close()


def test_a_folder_of_the_version_before_is_kept() -> None:
    assert VERSIONS
    archives = sorted(path.name.removesuffix(".tar.xz") for path in KEPT.glob("*.tar.xz"))
    assert archives == VERSIONS


def test_it_answers_alike(opened: Opened) -> None:
    kept = [as_said_now(*pair) for pair in zip(opened.answers, opened.found, strict=True)]
    said = opened.said(rounded(kept), rounded(opened.found))
    assert not said, "\n".join(said)


@pytest.mark.parametrize("version", VERSIONS)
def test_it_answers_alike_when_all_time_series_are_sealed(version: str, tmp_path: Path) -> None:
    data = unpack(KEPT / f"{version}.tar.xz", tmp_path / "data")
    assert asyncio.run(seal_all(data / "series")) > 20
    found = Opened(version, data)
    found.close()
    kept = [as_said_now(*pair) for pair in zip(found.answers, found.found, strict=True)]
    said = found.said(rounded(kept), rounded(found.found))
    assert not said, "\n".join(said)


def rounded(answer: Any) -> Any:
    """An answer with floats of 12 digits: what a sum of floats is depends on the order in which they are added."""
    if isinstance(answer, dict):
        return {name: rounded(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [rounded(value) for value in answer]
    return float(f"{answer:.12g}") if isinstance(answer, float) else answer


async def seal_all(folder: Path) -> int:
    """Seals all records of a store, in segments of few records; how many there were."""
    store = await open_rocks(folder)
    try:
        await seal(store)
        return store.stats().sealed_records
    finally:
        await store.close()


def test_all_users_log_in(opened: Opened) -> None:
    for username, password in USERS.items():
        api = opened.server.api(username, password)
        assert api.call("ping", message=username)["pong"]
        api.close()


def test_all_terminals_log_in(opened: Opened) -> None:
    port = opened.server.mqtt
    for uid in ("plant-a", "route-1", "sealed-1", "sealed-rsa", "north-1"):
        Terminal(port, uid).close()
    Terminal(port, "auto-1", password=auto_password("auto-1")).close()
    report_by_scram(port, "scram-1", "SCRAM-SHA-1", {"Time": "2024-03-02T10:00:00Z", "T": 4.5})


@pytest.mark.parametrize(("uid", "how"), [("watch-5", {"expiry_s": NEVER_S}), ("watch-3", {"protocol": 4})])
def test_a_kept_session_gets_what_was_queued(opened: Opened, uid: str, how: dict[str, Any]) -> None:
    with Terminal(opened.server.mqtt, uid, keeps=True, **how) as watcher:
        assert watcher.is_known
        messages = watcher.received(QUEUED)
        assert [json.loads(message.payload)["number"] for message in messages] == list(range(QUEUED))
        assert {(message.topic, message.qos) for message in messages} == {("g/plant-a/n/kept", 1)}


def test_a_retained_message_is_there(opened: Opened) -> None:
    with Terminal(opened.server.mqtt, "plant-a") as terminal:
        terminal.subscribe("g/plant-a/i/#")
        (message,) = terminal.received(1)
        assert message.retain
        assert (message.topic, json.loads(message.payload)["serial"]) == ("g/plant-a/i/unit/1", "A-1")


def test_queued_commands_reach_their_terminal(opened: Opened) -> None:
    with Terminal(opened.server.mqtt, "away-1") as terminal:
        terminal.subscribe("p2p/away-1")
        commands = terminal.received(2)
        assert [json.loads(each.payload) for each in commands] == [
            {"Act": "Control", "SP1": 21.5},
            {"Act": "Control", "SP2": "warm"},
        ]
        for each in commands:
            assert terminal.report("n", {"Result": "ok"}, correlation=each.properties.CorrelationData) == 0
    wait_for(lambda: states(opened, "away-1") == ["answered", "answered"], "the commands are answered")


def test_a_sealed_command_is_sealed_as_before(opened: Opened) -> None:
    with Terminal(opened.server.mqtt, "sealed-1") as terminal:
        terminal.subscribe("p2p/sealed-1")
        assert unseal("sealed-1", terminal.received(1)[0].payload) == {"Act": "Control", "SP": 7}
        wait_for(lambda: states(opened, "sealed-1") == ["delivered"], "the command is delivered")


def test_the_campaign_goes_on(opened: Opened) -> None:
    campaign = {"uid": opened.uids["MCU 2.2"]}
    with Terminal(opened.server.mqtt, "fw-2") as terminal:
        terminal.subscribe("p2p/fw-2")
        (command,) = terminal.received(1)
        order = json.loads(command.payload)
        assert (order["Act"], order["URL"]) == ("AXUpgrade", "http://files.example.com/mcu-2.2.bin")
        wait_for(lambda: states(opened, "fw-2") == ["delivered"], "the command is delivered")
        assert terminal.report("v", {"mcu_version": "2.2"}) == 0
        wait_for(lambda: opened.call("get_campaign_item", **campaign)["state"] == "done", "the campaign is done")


def test_a_new_report_goes_on_from_the_old(opened: Opened) -> None:
    """The pump that was out of order is mended and breaks again: a label closes, another opens, an event is raised."""
    events = event_ids(opened)
    (label,) = open_labels(opened)
    with Terminal(opened.server.mqtt, "plant-b") as terminal:
        for minute, flow, status in ((0, 70, 0), (1, 30, 8)):
            report = {"Time": f"2024-03-05T08:0{minute}:00Z", "pump": {"flow": flow, "status": status}}
            assert terminal.report("r", report) == 0
    (latest,) = opened.call("get_last_mosaic", object_id="1", keys=["FLOW", "FAULT", "SUPPLY"])["data"]
    assert latest == {"FLOW": 30, "FAULT": 1, "SUPPLY": 8.8, "time": "2024-03-05 08:01:00"}
    wait_for(lambda: len(event_ids(opened)) == len(events) + 2, "both events are in the list")
    assert min(set(event_ids(opened)) - set(events)) == max(events) + 1
    wait_for(lambda: [each["opened_at"] for each in open_labels(opened)] == ["2024-03-05 08:01:00"], "a label is open")
    assert opened.call("get_retainer_label_item", id=label["id"])["close_at"] == "2024-03-05 08:00:00"


def test_a_restart_in_place_answers_the_same_again(opened: Opened) -> None:
    """Results are left out: they are computed again after new reports, when nobody asks."""
    before = opened.ask()
    opened.restart()
    said = opened.said(before, opened.ask(), without=("statistics_list", "calculate", "statos", "last_statistics"))
    assert not said, "\n".join(said)


def states(opened: Opened, uid: str) -> list[str]:
    """Of a terminal's commands."""
    return [row["state"] for row in opened.call("get_command_list", terminal_id=uid)["data"]]


def event_ids(opened: Opened) -> list[int]:
    """Of the plant's events."""
    return [row["id"] for row in opened.call("get_event_list", object_id="1", page_size=1000)["data"]]


def open_labels(opened: Opened) -> list[dict[str, Any]]:
    """Of the plant, those that say that the pump is out of order."""
    found = opened.call("get_open_retainer_list", page_size=1000)["data"]
    return [label for label in found if label["object_id"] == "1" and label["code"] == "FAULT"]


@pytest.mark.parametrize(
    ("found", "without"),
    [
        ({"date": ["11/22", "11/23"], "data": {"11/22": 0, "11/23": 4}}, {"counts": [0, 4]}),
        ({"code": "A", "elapsed": "5", "close_at": ""}, {"code": "A", "close_at": ""}),
        ({"code": "A", "elapsed": "5", "close_at": "2026"}, {"code": "A", "elapsed": "5", "close_at": "2026"}),
        ([{"a": [{"elapsed": "1"}]}, 2], [{"a": [{}]}, 2]),
        ({"request": {"method": "POST", "url": "http://h/x"}}, {"request": {"method": "POST", "url": "******"}}),
        (
            {"entity": "rule", "before": None, "after": {"url": "http://h/x", "name": "n"}},
            {"entity": "rule", "before": None, "after": {"url": "******", "name": "n"}},
        ),
    ],
)
def test_what_depends_on_now_is_left_out_of_answers(found: Any, without: Any) -> None:
    assert without_now(found) == without
    assert RULES
