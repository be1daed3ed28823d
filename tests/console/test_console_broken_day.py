"""The broken day: what goes wrong is seen, says what can be done, heals by itself, and loses nothing that was typed."""

from __future__ import annotations

import re
import resource
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import OFTEN, Tab, open_tab, tab_of_administrator
from console_build import build_console
from playwright.sync_api import Browser, Locator, Route, expect
from upgraded import UpgradedPlatform, next_console

from migrated import PASSWORD
from running import Platform, wait_for
from support import require_program

PUMP = "pump-1"
HOUR_MS = 3_600_000
LATENCY_MS = 3_000
HEALED_MS = 60_000  # the platform starts again on a busy machine, and the page tries ever more seldom
NOISE = ["ERR_CONNECTION_REFUSED", "WebSocket connection", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build_console()
    return tmp_path_factory.mktemp("broken-day")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[list[Platform]]:
    """The platform of all tests of this file; whoever starts it again puts the new process there."""
    found = [Platform(folder / "data")]
    platform = found[0].login()
    platform.add_terminal(PUMP, platform.add_config(), name="Pump 1")
    publish(platform, '{"Flow": 7.5}')
    yield found
    found[0].stop()


@pytest.fixture
def platform(running: list[Platform]) -> Platform:
    return running[0]


@pytest.fixture
def tab(platform: Platform, browser: Browser) -> Iterator[Tab]:
    """A tab of the administrator's; a test names what the browser may complain of."""
    with tab_of_administrator(browser, platform.url) as opened:
        yield opened


_OTHER_CLOCK = """
{
  const Real = Date, off = %d;
  globalThis.Date = class extends Real {
    constructor(...given) { if (given.length) super(...given); else super(Real.now() + off); }
    static now() { return Real.now() + off; }
  };
}
"""


def publish(platform: Platform, text: str, *, pin: str = f"pin-{PUMP}", timeout_s: float = 30) -> int:
    """The pump says something; the exit status of its client."""
    login = ["-i", PUMP, "-u", f"u-{PUMP}", "-P", pin]
    topic = ["-q", "1", "-t", f"g/{PUMP}/r", "-m", text]
    command = [require_program("mosquitto_pub"), "-p", str(platform.mqtt), *login, *topic]
    return subprocess.run(command, capture_output=True, timeout=timeout_s).returncode


def test_a_platform_that_starts_again_is_waited_for(running: list[Platform], tab: Tab) -> None:
    tab.expected = NOISE
    tab.page.add_init_script(OFTEN)
    tab.page.reload()
    tab.open(f"#/terminals/{PUMP}?tab=messages")
    expect(tab.page.locator(".messages pre").first).to_contain_text("7.5")
    assert running[0].stop() == 0
    banner = tab.page.locator(".banner")
    expect(banner).to_contain_text("The connection to the platform is lost. It is tried again by itself")
    expect(tab.page.locator(".messages pre").first).to_contain_text("7.5")
    tab.page.wait_for_event("requestfailed", lambda asked: asked.url.endswith("get_terminal_item"), timeout=HEALED_MS)
    expect(tab.page.locator(".problem")).to_have_count(0)  # the banner says it, and what was read stays
    running[0] = running[0].again().login()
    expect(banner).to_have_count(0, timeout=HEALED_MS)
    assert publish(running[0], '{"Flow": 8.25}') == 0
    expect(tab.page.locator(".messages pre").first).to_contain_text("8.25")
    expect(tab.page.get_by_role("dialog")).to_have_count(0)  # the session outlived it


@contextmanager
def full_disk(platform: Platform) -> Iterator[None]:
    """No file of the platform's grows any more."""
    pid, most = platform.pid, resource.RLIM_INFINITY
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, most))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


def send(tab: Tab, *, twice: bool = False) -> None:
    """Sends what is typed, though the terminal is away; ``twice``: with a double click."""
    tab.page.get_by_role("button", name="Check").click()
    asked = tab.page.get_by_role("dialog")
    asked.get_by_role("checkbox").check()
    asked.get_by_role("button", name="Send now").click(click_count=2 if twice else 1)


def test_a_full_disk_is_said_and_what_was_typed_is_kept(platform: Platform, tab: Tab) -> None:
    tab.expected = ["status of 50[03]"]
    tab.open(f"#/terminals/{PUMP}?tab=commands")
    command = tab.page.get_by_role("textbox", name="Command")
    command.fill("Diag")
    with full_disk(platform):
        send(tab)
        note = tab.page.get_by_role("alert")
        expect(note).to_contain_text("cannot store anything")
        expect(note).to_contain_text("Free some of its disk")
        expect(command).to_have_value("Diag")
        with pytest.raises(subprocess.TimeoutExpired):  # what is not stored is not acknowledged
            publish(platform, '{"Flow": 9}', timeout_s=3)
        tab.open("#/overview")
        told = tab.page.locator(".todo > li", has_text="cannot store")
        expect(told.get_by_role("link")).to_have_attribute("href", "#/machine")
    wait_for(lambda: publish(platform, '{"Flow": 9.5}') == 0, "a report that is stored", timeout_s=60)
    tab.open(f"#/terminals/{PUMP}?tab=commands")
    expect(command).to_have_value("Diag")
    send(tab)
    expect(tab.page.locator(".messages li").first).to_contain_text("Diag")


def test_a_session_that_ended_asks_again_and_does_what_was_asked(platform: Platform, browser: Browser) -> None:
    user = {"username": "shift", "password": "shift-password", "role": "operator"}
    platform.call("create_user", **user, authority_id=1, created_by=1, last_modified_by=1, is_available=1)
    tab = open_tab(browser, platform.url)
    tab.expected = ["status of 4"]
    tab.open()
    tab.login("shift", "shift-password")
    tab.open(f"#/terminals/{PUMP}?tab=commands")
    tab.page.get_by_role("textbox", name="Command").fill("Rinse")
    platform.call("update_user", username="shift", password="another-password")
    send(tab)
    dialog = tab.page.get_by_role("dialog").filter(has=tab.page.get_by_label("Password"))
    expect(dialog).to_contain_text("Your session has ended. Nothing that you typed is lost.")
    dialog.get_by_label("Password").fill("another-password")
    dialog.get_by_role("button").click()
    expect(dialog).to_have_count(0)
    expect(tab.page.locator(".messages li").first).to_contain_text("Rinse")
    assert [each["command"] for each in commands(platform)].count("Rinse") == 1
    assert tab.complaints() == []
    tab.page.context.close()


def commands(platform: Platform) -> list[dict[str, object]]:
    return list(platform.call("get_command_list", terminal_id=PUMP, page_size=100)["data"])


def test_a_refused_terminal_is_told_of_with_what_to_do(platform: Platform, tab: Tab) -> None:
    assert publish(platform, "{}", pin="wrong") != 0
    row = tab.page.locator(".todo li", has_text="Pump 1")
    expect(row).to_contain_text("refused")
    row.get_by_role("link", name="Why").click()
    expect(tab.page.get_by_text("compare the record's pin with the terminal's")).to_be_visible()
    assert publish(platform, '{"Flow": 7}') == 0
    tab.open("#/overview")
    expect(tab.page.locator(".todo li", has_text="Pump 1").get_by_text("refused", exact=True)).to_have_count(0)


def test_three_seconds_of_latency_are_borne(platform: Platform, tab: Tab) -> None:
    before = len(commands(platform))
    tab.open(f"#/terminals/{PUMP}?tab=commands")
    tab.page.get_by_role("textbox", name="Command").fill("Slow")
    session = tab.page.context.new_cdp_session(tab.page)
    slow = {"offline": False, "latency": LATENCY_MS, "downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", slow)
    send(tab, twice=True)
    tab.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()  # what was sent goes on
    tab.page.get_by_role("link", name="Objects").click()
    expect(tab.page.locator("main")).to_contain_text("Loading")
    assert tab.run("document.querySelector('nav [aria-current=page]').textContent") == "Objects"
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Objects")
    tab.page.keyboard.press("Control+k")
    tab.page.keyboard.type("pump")  # letters come at once, whatever the answers take
    assert tab.run("document.activeElement.value") == "pump"
    expect(tab.page.get_by_role("option").first).to_contain_text("Pump 1")
    wait_for(lambda: len(commands(platform)) > before, "the command")
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("link", name="Terminals").click()
    expect(tab.page.locator("tbody tr").first).to_contain_text("Pump 1")
    assert len(commands(platform)) == before + 1
    expect(tab.page.locator(".banner")).to_have_count(0)


@contextmanager
def chatty(platform: Platform) -> Iterator[None]:
    """The pump says something each fifth of a second."""
    login = ["-i", PUMP, "-u", f"u-{PUMP}", "-P", f"pin-{PUMP}"]
    command = [require_program("mosquitto_pub"), "-p", str(platform.mqtt), *login, "-t", f"g/{PUMP}/r", "-l"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as said:
        assert said.stdin is not None
        ended, pipe = threading.Event(), said.stdin

        def talk() -> None:
            while not ended.wait(0.2):
                pipe.write(b'{"Flow": 6.25}\n')
                pipe.flush()

        talking = threading.Thread(target=talk)
        talking.start()
        try:
            yield
        finally:
            ended.set()
            talking.join()
            pipe.close()


_SLOW_ANSWERS = """
{
  const ask = globalThis.fetch;
  globalThis.fetch = async (...given) => {
    await new Promise((resume) => setTimeout(resume, %d));
    return ask(...given);
  };
}
"""
"""Answers take their time, live frames don't."""


def test_a_page_that_is_told_of_news_faster_than_it_can_read_shows_something(platform: Platform, tab: Tab) -> None:
    tab.page.add_init_script(_SLOW_ANSWERS % LATENCY_MS)
    with chatty(platform):
        tab.page.reload()
        tab.settle()
        tab.open(f"#/terminals/{PUMP}?tab=messages")
        expect(tab.page.locator(".messages pre").first).to_contain_text("6.25")
        tab.settle()


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_an_hour_off_shows_right_ages(platform: Platform, browser: Browser, off_ms: int) -> None:
    publish(platform, '{"Flow": 6}')
    with tab_of_administrator(browser, platform.url, _OTHER_CLOCK % off_ms) as tab:
        tab.open(f"#/terminals/{PUMP}?tab=messages")
        expect(tab.page.locator(".messages time").first).to_have_text(re.compile(r"^\d+ (s|min)$"))
        ages = tab.page.locator("time").all_inner_texts()
        assert not [each for each in ages if "future" in each]
        tab.open(f"#/terminals/{PUMP}?tab=commands")
        tab.page.get_by_role("textbox", name="Command").fill("Clock")
        send(tab)
        expect(tab.page.locator(".messages li").first).to_contain_text("Clock")
        assert commands(platform)[0]["state"] != "expired"


_OWN = re.compile(r"[A-Za-z]{3,}")
_NOT_WORDS = {"Pump", "Flow", "Diag", "Terrazzo", "admin", "UTC", "MQTT", "pin", "auto"}
"""What is no word of English: names, and what the platform's interface calls things."""
_QUOTED = "disk I/O error"  # what the database said


def chinese(said: Locator) -> None:
    """What is said is there, in Chinese, and in nothing else."""
    expect(said).to_contain_text(re.compile("[\u4e00-\u9fff]{2,}"))
    text = said.inner_text().replace(_QUOTED, "")
    assert set(_OWN.findall(text)) <= _NOT_WORDS, text


def _other_build(route: Route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, body=re.sub(r'(terrazzo-build" content=")\w+', r"\1other", answer.text()))


def test_the_broken_day_reads_in_chinese(platform: Platform, browser: Browser) -> None:
    assert publish(platform, "{}", pin="wrong") != 0
    tab = open_tab(browser, platform.url, locale="zh-CN")
    tab.expected = [*NOISE, "status of", "ERR_INTERNET_DISCONNECTED"]
    tab.page.add_init_script(_OTHER_CLOCK % HOUR_MS)
    tab.page.add_init_script(OFTEN)
    tab.open()
    tab.login("admin", PASSWORD)
    page, banner = tab.page, tab.page.locator(".banner")
    refused = page.get_by_role("listitem").filter(has_text="Pump 1").filter(has_text="被拒绝")
    chinese(refused)
    refused.get_by_role("link", name="原因").click()
    chinese(page.get_by_role("region", name="拒绝记录").get_by_role("listitem").first)
    chinese(page.get_by_role("region", name="在线状态").get_by_role("definition").nth(1))
    tab.open(f"#/terminals/{PUMP}?tab=messages")
    expect(page.get_by_role("listitem").get_by_role("time").first).to_have_text(re.compile(r"^\d+ (秒|分)"))
    page.context.set_offline(True)
    chinese(banner)
    page.context.set_offline(False)
    chinese(page.get_by_role("status").filter(has_text="连接已恢复").locator(".toast > div"))
    tab.open(f"#/terminals/{PUMP}?tab=commands")
    page.get_by_role("textbox", name="命令").fill("Diag")
    with full_disk(platform):
        page.get_by_role("button", name="核对").click()
        page.get_by_role("dialog").get_by_role("checkbox").check()
        page.get_by_role("dialog").get_by_role("button", name="立即发送").click()
        chinese(page.get_by_role("alert"))
        with pytest.raises(subprocess.TimeoutExpired):
            publish(platform, '{"Flow": 9}', timeout_s=3)
        tab.open("#/overview")
        chinese(page.get_by_role("listitem").filter(has_text="无法存储"))
    held = list[Route]()
    page.route("**/get_dashboard_list", lambda route: held.append(route))
    tab.open("#/dashboards")
    expect(page.locator("main")).to_contain_text("加载中")
    page.unroute("**/get_dashboard_list")
    page.route(f"{platform.url}/", _other_build)
    chinese(banner)
    page.context.clear_cookies()
    tab.open("#/objects")
    dialog = page.get_by_role("dialog").filter(has=page.get_by_label("密码"))
    chinese(dialog)
    page.context.close()


def test_a_tab_that_outlives_an_upgrade_is_told_and_loses_nothing(folder: Path, browser: Browser) -> None:
    old = Platform(folder / "upgraded").login()
    old.add_terminal(PUMP, old.add_config(), name="Pump 1")
    tab = open_tab(browser, old.url)
    tab.expected = [*NOISE, "status of 404"]
    tab.open()
    tab.login("admin", PASSWORD)
    tab.open(f"#/terminals/{PUMP}?tab=commands")
    tab.page.get_by_role("textbox", name="Command").fill("Flush")
    wall = _wall(old, browser)
    assert old.stop() == 0
    environment = {**old.environment, "CONSOLE": str(next_console(folder))}
    with UpgradedPlatform(old.data, env=environment, ports=old.ports):
        banner = tab.page.locator(".banner", has_text="The platform was upgraded")
        expect(banner).to_contain_text("what you typed stays", timeout=HEALED_MS)
        tab.open("#/dashboards")  # which was not loaded before, and is not there any more
        expect(tab.page.get_by_role("alert").filter(has_text="could not be loaded")).to_contain_text("upgraded: reload")
        tab.open(f"#/terminals/{PUMP}?tab=commands")
        banner.get_by_role("button", name="Reload").click()
        expect(banner).to_have_count(0)
        expect(tab.page.get_by_role("textbox", name="Command")).to_have_value("Flush")
        assert tab.run("document.querySelector('meta[name=terrazzo-build]').content") == "feedfeedfeed"
        tab.open("#/dashboards")
        expect(tab.page.get_by_role("heading", level=1)).to_have_text("Dashboards")
        build = wall.page.locator("meta[name=terrazzo-build]")
        expect(build).to_have_attribute("content", "feedfeedfeed", timeout=HEALED_MS)  # nobody has to touch it
        expect(wall.page.get_by_text("Page 2 of 2")).to_be_visible()
        for each in (tab, wall):
            assert each.complaints() == []
            each.page.context.close()


def _wall(platform: Platform, browser: Browser) -> Tab:
    """One that shows the second page of a dashboard."""
    pages = {f"Dashboard-{n}": {"name": f"Hall {n}", "col": 24, "row": 12, "data": []} for n in (1, 2)}
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    uid = platform.call("create_dashboard", name="Halls", category="pro", script=pages, **by)["uid"]
    tab = open_tab(browser, platform.url)
    tab.expected = NOISE
    tab.page.add_init_script(OFTEN)
    tab.open(f"#/wall?key={platform.call('renew_wall_link', uid=uid)['key']}&page=Dashboard-2")
    expect(tab.page.get_by_text("Page 2 of 2")).to_be_visible()
    return tab
