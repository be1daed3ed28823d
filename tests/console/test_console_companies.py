"""Two companies at once beside the demo's: neither sees a word of another, in any page, search or live frame."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from other_company import OtherCompany, Texts, plant_company
from playwright.sync_api import Browser, expect
from routes import View
from walk import visit

from running import wait_for
from support import require_program

pytestmark = pytest.mark.timeout(400)  # all views, one after the other
MARKS = ("zq-only-of-the-first", "zj-only-of-the-second")
UIDS = ("first-1", "second-1")
ELSEWHERE = ("chiller", "demo-")
"""Words of the demo's company."""


@dataclass
class Session:
    """A company's administrator with a browser, and its terminal.

    Attributes:
        own: words of this company alone.
        strange: words of the others.
        token: with which the plant's client acts for it.
        subscribed: kinds by subscription.
        frames: all that came.
    """

    company: OtherCompany
    views: dict[str, View]
    tab: Tab
    own: tuple[str, ...]
    strange: tuple[str, ...]
    token: str
    subscribed: dict[str, set[str]] = field(default_factory=dict)
    frames: list[dict[str, Any]] = field(default_factory=list)

    def listen(self) -> None:
        """Notes what is subscribed to and what comes."""

        def open_socket(socket: Any) -> None:
            socket.on("framesent", lambda frame: self._sent(json.loads(frame)))
            socket.on("framereceived", lambda frame: self._came(json.loads(frame)))
            socket.on("close", lambda _: self.subscribed.clear())

        self.tab.page.on("websocket", open_socket)

    def _sent(self, request: dict[str, Any]) -> None:
        if request.get("action") == "subscribe":
            self.subscribed[f"asked {request['actionid']}"] = set(request["kinds"])
        elif request.get("action") == "unsubscribe":
            self.subscribed.pop(f"{request['subscription']}", None)

    def _came(self, frame: dict[str, Any]) -> None:
        self.frames.append(frame)
        kinds = self.subscribed.pop(f"asked {frame.get('actionid')}", set()) if frame["resp"] == "subscribe" else set()
        if kinds and frame["code"] == 200:
            self.subscribed[f"{frame['result']['subscription']}"] = kinds

    def follows(self) -> set[str]:
        """The kinds that the page has subscribed to."""
        return set[str]().union(*self.subscribed.values())

    def see(self, view: View) -> str:
        """All that a view shows, in small letters."""
        visit(self.tab, view)
        return self.tab.seen().lower()

    def look(self, route: str) -> str:
        """All that a page shows of another company's record, in small letters: no dialog opens there."""
        self.tab.open(route)
        self.tab.settle()
        return self.tab.seen().lower()

    def act(self, plant: DemoPlant) -> None:
        """Something of each kind that is told live: presence, reports, an event, a label, a command."""
        uid = self.company.records["terminals"]
        login = ["-i", uid, "-u", f"u-{uid}", "-P", f"pin-{uid}"[:16], "-t", f"g/{uid}/r"]
        command = [require_program("mosquitto_pub"), "-p", str(plant.mqtt), "-q", "1", *login, "-l"]
        lines = "".join(json.dumps({"t": value, "text": self.own[0]}) + "\n" for value in (0, 1_000))
        subprocess.run(command, input=lines.encode(), capture_output=True, timeout=60, check=True)
        plant.client.session.token = self.token
        plant.call("publish_terminal_command", terminal_id=uid, command=self.own[0], value="1")

    def told(self, kinds: set[str], since: int) -> bool:
        """Whether a frame of one of the kinds has come, of those behind the first ones."""
        self.tab.page.wait_for_timeout(20)  # in which events come
        return any(each.get("kind") in kinds for each in self.frames[since:])

    def leaked(self) -> list[dict[str, Any]]:
        """Live frames that are another company's."""
        uid, number = self.company.records["terminals"], self.company.records["objects"]
        return [
            each
            for each in self.frames
            if each["resp"] == "live"
            and (
                any(word in json.dumps(each) for word in self.strange)
                or str(each.get("data", {}).get("terminal_id") or uid) != uid
                or str(each.get("data", {}).get("object_id") or number) != number
            )
        ]


@pytest.fixture(scope="module")
def sessions(plant: DemoPlant, browser: Browser) -> Iterator[tuple[Session, Session]]:
    opened = [_session(plant, browser, at) for at in (0, 1)]
    yield opened[0], opened[1]
    for each in opened:
        assert each.tab.complaints() == []
        each.tab.page.context.close()


def _session(plant: DemoPlant, browser: Browser, at: int) -> Session:
    uid, mark = UIDS[at], MARKS[at]
    texts = Texts(uid=uid, name=f"{mark} name", short=mark[:16], command=mark, long=f"{mark} " * 20, client=f"{mark}-x")
    company = plant_company(plant, texts)
    views = {each.name: replace(each, is_super=False) for each in company.views(plant)}
    plant.login(company.username, company.password)
    plant.call("start_retainer", uid=plant.call("get_retainer_list")["data"][0]["uid"])
    tab = open_tab(browser, plant.url)
    tab.expected = ["status of 40[0-9]"]
    strange = (MARKS[1 - at], UIDS[1 - at], *ELSEWHERE)
    session = Session(company, views, tab, (mark, uid), strange, plant.token or "")
    session.listen()
    tab.open()
    tab.login(company.username, company.password)
    return session


def test_two_sessions_at_once_see_no_word_of_each_other(plant: DemoPlant, sessions: tuple[Session, Session]) -> None:
    seen: dict[str, set[str]] = {}
    own: list[set[str]] = [set(), set()]
    lives: list[set[str]] = [set(), set()]
    for name in sessions[0].views:
        for at, session in enumerate(sessions):
            text = session.see(session.views[name])
            seen.setdefault(name, set()).update(word for word in session.strange if word in text)
            own[at] |= {name} if any(word in text for word in session.own) else set()
        for at, session in enumerate(sessions):
            kinds = session.follows() - (set() if name == "overview" else {"attention"})
            if not kinds:
                continue
            lives[at].add(name)
            before = len(session.frames)
            session.act(plant)
            wait_for(lambda s=session, k=kinds, b=before: s.told(k, b), f"frames on {name}", timeout_s=60)  # type: ignore[misc]
        for session, other in (sessions, sessions[::-1]):
            theirs = other.views[name]
            if theirs.route == session.views[name].route or theirs.is_wall:
                continue
            text = session.look(theirs.route)
            seen[name] |= {word for word in session.strange if word in text and word not in theirs.route}
    assert {name: words for name, words in seen.items() if words} == {}
    assert [_OWN - each for each in own] == [set(), set()]  # what nobody has, nobody could have seen
    assert [_LIVES - each for each in lives] == [set(), set()]
    assert [session.leaked() for session in sessions] == [[], []]
    first, second = sessions
    assert replace(first, frames=second.frames).leaked(), "frames of another company are not told apart"


def test_a_search_finds_nothing_of_another_company(sessions: tuple[Session, Session]) -> None:
    for session in sessions:
        session.tab.page.goto("about:blank")  # from a wall, which has no search
        session.see(session.views["overview"])
        for word in session.strange:
            session.tab.page.keyboard.press("Control+k")
            session.tab.page.keyboard.type(word)
            expect(session.tab.page.get_by_role("dialog").get_by_text("Nothing found")).to_be_visible()
            session.tab.page.keyboard.press("Escape")
        session.tab.page.keyboard.press("Control+k")
        session.tab.page.keyboard.type(session.own[0])
        expect(session.tab.page.get_by_role("dialog").get_by_role("option").first).to_contain_text(session.own[0])


_OWN = {"overview", "events", "terminals", "terminal", "messages", "commands", "mapping", "mapping-table", "objects"}
_OWN |= {"object", "logbook", "statistics", "calculations", "balances", "rules", "campaigns", "api-keys"}
_OWN |= {"waiting-commands", "all-commands", "claim-keys", "users", "audit", "dashboards", "handover", "control-table"}
_OWN |= {"customers", "customer", "retainers", "retainer", "dashboard", "editor", "wall", "campaign", "rule"}
"""Pages on which each sees something of its own."""
_LIVES = {"overview", "events", "labels", "terminals", "terminal", "messages", "commands", "logbook", "object", "map"}
_LIVES |= {"waiting-commands", "all-commands", "expired-commands", "dashboard"}
"""Pages that follow what happens."""
