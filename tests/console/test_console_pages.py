"""The first pages, each with what it is for; and what holds on every page."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from contextlib import suppress
from typing import Any

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from other_company import HOSTILE_NAMES
from playwright.sync_api import Browser, expect

from mqtt_bytes import login
from running import wait_for
from support import require_program


@pytest.fixture(scope="module")
def hostile(plant: DemoPlant) -> list[str]:
    """Terminals whose names are hostile, one of which said something of that kind."""
    config = plant.call("get_terminal_config_list")[0]["uid"]
    for kind, name in HOSTILE_NAMES.items():
        plant.add_terminal(f"hostile-{kind}", config, name=name, description=name * 3)
    return [f"hostile-{kind}" for kind in HOSTILE_NAMES]


def test_the_overview_says_what_needs_a_person_and_leads_there(admin: Tab) -> None:
    todo = admin.page.locator(".todo")
    expect(todo.get_by_text("refused", exact=True)).to_be_visible(timeout=20_000)
    expect(admin.page.locator(".figure").first).to_contain_text(re.compile(r"\d+ of 1\d online"))
    todo.get_by_role("link", name="Why").first.click()
    expect(admin.page.get_by_role("heading", level=1)).to_contain_text("Boiler house meter")
    expect(admin.page.get_by_text("compare the record's pin with the terminal's")).to_be_visible()


def test_a_limit_that_is_reached_is_said_in_words_and_leads_to_what_it_counts(tab: Tab, plant: DemoPlant) -> None:
    plant.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    company = next(each for each in plant.call("get_company_list")["data"] if each["name"].startswith("Demo Works"))
    try:
        plant.call("update_company", uid=company["uid"], limit_record_bytes=1_000)
        tab.login("demo-admin", plant.password("demo-admin"))
        row = tab.page.locator(".todo li", has_text="quota")
        expect(row).to_contain_text(re.compile(r"records: [\d.]+ (k|M)B of 1 kB used"))
        expect(row).to_contain_text("may raise limits.company_record_bytes")
        row.get_by_role("link", name="Open").click()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text("Terminals")
    finally:
        plant.call("update_company", uid=company["uid"], limit_record_bytes=0)
        plant.login("demo-admin", plant.password("demo-admin"))


def test_a_company_sees_the_rate_of_its_own_reports(admin: Tab) -> None:
    rate = admin.page.get_by_role("region", name="Reports in").locator(".figure")
    expect(rate).to_have_text(re.compile(r"^(0\.[1-9]|[1-9][\d.,]*k?) /s$"), timeout=30_000)
    expect(admin.page.get_by_role("region", name="Bytes in").locator(".figure")).to_have_text(
        re.compile(r"[\d.,]+k? /s")
    )
    expect(admin.page.get_by_role("region", name="Not stored yet").locator(".figure")).to_have_text(
        re.compile(r"^\d+$")
    )
    expect(admin.page.get_by_role("img", name=re.compile("^Reports in")).locator("path, polyline")).not_to_have_count(0)


def test_the_overview_says_whose_it_is_and_how_many_are_offline(tab: Tab, plant: DemoPlant) -> None:
    super_user = plant.environment["TERRAZZO_ADMIN__PASSWORD"]
    for name, password, whose in (
        ("demo-viewer", plant.password("demo-viewer"), "Demo Works: what its users see"),
        ("admin", super_user, "all companies, and the machine"),
    ):
        tab.open()
        tab.login(name, password)
        expect(tab.page.get_by_role("main")).to_contain_text(whose)
        card = tab.page.get_by_role("region", name="Terminals")
        online, total = map(int, re.findall(r"\d+", card.locator(".figure").inner_text()))
        row = card.get_by_role("row").filter(has_text=re.compile("^ ?offline"))
        expect(row.get_by_role("cell").last).to_have_text(str(total - online))
        tab.page.context.clear_cookies()


def test_a_viewer_sees_the_same_and_no_buttons_to_change_it(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-viewer", plant.password("demo-viewer"))
    expect(tab.page.locator(".todo li").first).to_be_visible()
    expect(tab.page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    tab.open("#/terminals/demo-chiller-1?tab=commands")
    expect(tab.page.get_by_role("heading", name="Commands")).to_be_visible()
    for name in ("Check", "Send"):
        expect(tab.page.get_by_role("button", name=name)).to_have_count(0)
    tab.open("#/terminals/demo-spare?tab=connect")
    expect(tab.page.get_by_text("-P '<pin>'")).to_be_visible()


def test_terminals_are_searched_filtered_and_sorted_and_a_link_keeps_the_view(admin: Tab) -> None:
    admin.open("#/terminals?search=demo-")
    expect(admin.page.get_by_role("row")).to_have_count(13)
    admin.page.get_by_role("searchbox").fill("meter")
    expect(admin.page.get_by_role("row")).to_have_count(5)
    admin.page.get_by_role("button", name="Name", exact=True).click()
    expect(admin.page.get_by_role("row").nth(1)).to_contain_text("demo-meter-boiler")
    admin.page.get_by_label("Presence").select_option("0")
    expect(admin.page.get_by_role("row")).to_have_count(2)
    assert "search=meter" in admin.page.url
    admin.page.reload()
    expect(admin.page.get_by_role("row")).to_have_count(2)
    admin.page.get_by_label("Presence").select_option("silent")
    expect(admin.page.get_by_text("Nothing found")).to_be_visible()


def test_a_command_is_looked_at_sent_once_and_followed_to_the_answer(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/terminals/demo-chiller-1?tab=commands")
    admin.page.get_by_role("textbox", name="Command").fill("SETPOINT")
    admin.page.get_by_role("textbox", name="Value").fill("6.30")
    admin.page.get_by_role("button", name="Check").dblclick()
    dialog = admin.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Send SETPOINT = 6.30?")
    expect(dialog).to_contain_text("It expires if the terminal has not acknowledged it within 24 h")
    dialog.get_by_role("button", name="Cancel").click()
    assert "SETPOINT" not in {each["command"] for each in _commands(plant, "demo-chiller-1")}
    admin.page.get_by_role("button", name="Check").click()
    dialog.get_by_role("button", name="Send now").dblclick()
    expect(dialog.get_by_role("status")).to_contain_text("answered", timeout=30_000)
    dialog.locator("footer button").click()
    expect(admin.page.locator(".messages li").first).to_contain_text("SETPOINT")
    assert [each["value"] for each in _commands(plant, "demo-chiller-1")].count("6.30") == 1


def test_a_command_for_a_terminal_that_is_away_is_held_back(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/terminals/demo-spare?tab=commands")
    admin.page.get_by_role("textbox", name="Command").fill("Diag")
    admin.page.get_by_role("button", name="Check").click()
    dialog = admin.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Send Diag?")
    expect(dialog.get_by_role("button", name="Send now")).to_be_disabled()
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Send now").click()
    expect(dialog.get_by_role("status")).to_contain_text("waits")
    expect(dialog.get_by_role("status")).to_contain_text("Expires")
    waiting = [each["uid"] for each in _commands(plant, "demo-spare") if each["state"] == "queued"]
    assert len(waiting) == 1
    plant.call("recall_commands", uids=waiting)
    expect(dialog.get_by_role("status")).to_contain_text("recalled by demo-admin")


def _commands(plant: DemoPlant, uid: str) -> list[dict[str, Any]]:
    return list(plant.call("get_command_list", terminal_id=uid, page_size=100)["data"])


def test_messages_come_by_themselves(admin: Tab) -> None:
    admin.open("#/terminals/demo-chiller-1?tab=messages")
    first = admin.page.locator(".messages pre").first
    before = first.inner_text()
    expect(first).not_to_have_text(before, timeout=20_000)


def test_a_message_says_which_variables_of_which_objects_it_became(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/terminals/demo-chiller-1?tab=messages")
    card = admin.page.locator(".card")
    expect(card.locator(".feeds")).to_contain_text("Chiller 1")
    became = card.locator(".became").first
    expect(became).to_contain_text(re.compile(r"Chiller 1.* = "))
    card.get_by_label("raw").check()
    expect(card.locator(".messages pre").first).to_contain_text('{"')
    channels = card.get_by_label("Channel")
    channels.select_option("a")
    expect(card.locator(".messages li").first).to_contain_text("g/demo-chiller-1/a")
    assert "channel=a" in admin.page.url
    became = card.get_by_role("link", name=re.compile("^Chiller 1")).first
    became.click()
    expect(admin.page.get_by_role("heading", level=1)).to_contain_text("Chiller 1")


def test_what_could_not_be_read_stands_there_with_its_reason(admin: Tab, plant: DemoPlant) -> None:
    uid = "demo-spare"
    login = ["-i", uid, "-u", uid, "-P", plant.password(uid), "-q", "1", "-t", f"g/{uid}/r"]
    for payload in (b'{"Temperature": "<b>', b"\xff\x00bad"):
        command = [require_program("mosquitto_pub"), "-p", str(plant.mqtt), *login, "-s"]
        subprocess.run(command, input=payload, capture_output=True, timeout=60, check=False)
    admin.open(f"#/terminals/{uid}?tab=messages")
    card = admin.page.locator(".card", has_text="Could not be read")
    newest = card.locator(".rejects > li").first
    expect(newest).to_contain_text("neither JSON nor a MessagePack map: first byte 0xff")
    expect(newest).to_contain_text("ff 00 62 61 64")
    expect(card.locator(".rejects > li").nth(1)).to_contain_text('{"Temperature": "<b>')
    assert admin.accessibility() == []
    admin.run("localStorage.setItem('terrazzo-language', 'zh')")
    admin.page.reload()
    expect(admin.page.locator(".rejects > li").first).to_contain_text("0xff")
    expect(admin.page.locator(".rejects > li").first).to_contain_text("既不是 JSON 也不是 MessagePack")


def test_a_terminal_says_what_of_its_configuration_is_otherwise(admin: Tab, plant: DemoPlant) -> None:
    wanted = {"limits": {"high": 80}, "interval": 30}
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    made = plant.call("create_terminal_config", name="Wanted", deliver=1, config_script=wanted, **by)
    plant.add_terminal("configured-1", made["uid"])
    admin.open("#/terminals/configured-1")
    card = admin.page.get_by_role("region", name="Configuration wanted and reported").first
    expect(card).to_contain_text("was not sent yet")
    login = ["-i", "configured-1", "-u", "u-configured-1", "-P", "pin-configured-1"]
    said = ["-q", "1", "-t", "g/configured-1/p", "-m", '{"limits.high": 90, "interval": 30}']
    command = [require_program("mosquitto_pub"), "-p", str(plant.mqtt), *login, *said]
    subprocess.run(command, check=True, timeout=60)
    row = card.get_by_role("row").filter(has_text="limits.high")
    expect(row.get_by_role("cell")).to_have_text(["limits.high", "80", "90"])
    expect(card.get_by_role("row")).to_have_count(2)
    expect(card).to_contain_text(re.compile(r"waits.*since \d+ s.*last reported \d+ s", re.DOTALL))
    admin.open("#/terminals/demo-chiller-2")
    expect(admin.page.get_by_text("Its configuration is not sent to it")).to_be_visible()


def test_the_commands_that_connect_a_terminal_do(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/terminals/demo-spare?tab=connect")
    text = admin.page.locator(".code pre").first.inner_text()
    assert f"-p {plant.mqtt} -i demo-spare -u demo-spare -P {plant.password('demo-spare')}" in text
    assert "-t g/demo-spare/r" in text


def test_a_terminal_with_a_certificate_is_told_to_show_that(admin: Tab, plant: DemoPlant) -> None:
    plant.add_terminal("sealed-1", plant.add_config("sealed"), mode="cert")
    admin.open("#/terminals/sealed-1?tab=connect")
    shown = admin.page.get_by_role("region", name="How to connect this terminal")
    expect(shown).to_contain_text("It logs in with its certificate, over TLS")
    expect(shown).to_contain_text("The platform listens for no MQTT over TLS")
    expect(shown.locator(".code")).to_have_count(0)
    expect(shown.get_by_text("User name", exact=True)).to_have_count(0)
    admin.open("#/terminals/demo-spare?tab=connect")
    expect(shown.locator(".facts").first).to_have_text(
        f"Client iddemo-spareUser namedemo-sparePin{plant.password('demo-spare')}"
    )


def test_the_band_of_a_terminal_has_the_reason_of_each_break(admin: Tab, plant: DemoPlant) -> None:
    plant.add_terminal("breaks-1", plant.add_config("breaks"))
    for number in range(6):
        with socket.create_connection(("127.0.0.1", plant.mqtt)) as connection:
            connection.sendall(login("breaks-1", "u-breaks-1", "pin-breaks-1"))
            assert connection.recv(4) == b"\x20\x02\x00\x00"
            if number == 5:
                connection.sendall(b"\xe0\x00")  # DISCONNECT
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    wait_for(lambda: len([each for each in _bands(plant, "breaks-1") if each["state"] == "offline"]) >= 6, "six breaks")
    reasons = [each["reason"] for each in _bands(plant, "breaks-1") if each["state"] == "offline"][::-1]
    admin.open("#/terminals/breaks-1")
    breaks = admin.page.get_by_role("list", name="Breaks").get_by_role("listitem")
    expect(breaks).to_have_count(4)
    admin.page.get_by_role("button", name=f"All {len(reasons)} breaks").click()
    expect(breaks).to_have_text(
        [re.compile(rf"offline{f': {re.escape(each)}' if each else ''} \(\d+ (s|min)\)") for each in reasons]
    )
    assert reasons[0] == "disconnected"
    assert len(set(reasons)) > 1
    assert admin.accessibility() == []


def _bands(plant: DemoPlant, uid: str) -> list[dict[str, Any]]:
    hour = 3_600
    times = {
        name: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + off))
        for name, off in (("start_time", -hour), ("end_time", hour))
    }
    return list(plant.call("get_presence_list", terminal_id=uid, **times))


_SOUNDS = """
window.sounds = 0;
const own = AudioContext.prototype.createOscillator;
AudioContext.prototype.createOscillator = function () { window.sounds += 1; return own.call(this); };
"""


def test_what_is_new_is_counted_and_heard_on_other_pages_too(plant: DemoPlant, browser: Browser) -> None:
    tab = open_tab(browser, plant.url)
    tab.page.add_init_script(_SOUNDS)
    tab.open()
    tab.login("demo-admin", plant.password("demo-admin"))
    tab.page.get_by_label("Sound for what is new").check()
    assert tab.run("window.sounds") == 2
    tab.open("#/terminals")
    expect(tab.page).to_have_title(re.compile(r"^\(\d+\) Terminals · Terrazzo$"))
    for number in range(6):  # where others come meanwhile, the count falls
        _refuse(plant, f"news-{number}")
        with suppress(AssertionError):
            wait_for(lambda: tab.run("window.sounds") >= 4, "a sound", timeout_s=15)
            break
    assert tab.run("window.sounds") >= 4
    wait_for(lambda: _is_counted(tab, plant), "the count of the menu", timeout_s=60)
    assert tab.complaints() == []
    tab.page.context.close()


def _refuse(plant: DemoPlant, uid: str) -> None:
    plant.add_terminal(uid, plant.call("get_terminal_config_list")[0]["uid"])
    with socket.create_connection(("127.0.0.1", plant.mqtt)) as connection:
        connection.sendall(login(uid, f"u-{uid}", "wrong"))
        assert connection.recv(4)[3] != 0


def _is_counted(tab: Tab, plant: DemoPlant) -> bool:
    """Whether the menu and the title say how many things there are to do now."""
    now = plant.call("get_attention", entries=1)
    stopped = sum(now["terminals"][name] for name in ("away", "silent", "refused"))
    count = stopped + now["events"]["count"] + now["labels"]["count"] + now["commands"]["expired"] + len(now["quotas"])
    shown = tab.page.locator("nav.side .count").inner_text()
    return shown == str(count) and tab.page.title() == f"({count}) Terminals · Terrazzo"


def test_what_a_terminal_may_publish_and_hear_stands_by_its_record(admin: Tab, plant: DemoPlant) -> None:
    plant.add_terminal("narrow-1", plant.add_config("narrow"), topic="pub:r,a;sub:g/narrow-1/n")
    admin.open("#/terminals/narrow-1?tab=connect")
    said = admin.page.locator(".topics dd")
    expect(said.nth(0)).to_have_text("g/narrow-1/rg/narrow-1/a")
    expect(said.nth(1)).to_have_text("p2p/narrow-1g/narrow-1/n")
    plant.change_terminal("narrow-1", access="pub")
    admin.page.reload()
    expect(said.nth(1)).to_have_text("nothing: its access is pub")


def test_an_event_is_commented_on_and_cleared(admin: Tab, plant: DemoPlant) -> None:
    number = plant.call("get_event_list", page_size=1)["data"][0]["id"]
    admin.open(f"#/events?state=all&event={number}")
    dialog = admin.page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("looked at <b>it</b>")
    dialog.get_by_role("button", name="Add the comment").click()
    expect(dialog.locator(".messages")).to_contain_text("looked at <b>it</b>")
    expect(dialog.get_by_label("Comment")).to_have_value("")
    clear = dialog.get_by_role("button", name="Clear")
    if clear.count():
        clear.click()
    expect(dialog).to_contain_text("cleared")
    assert plant.call("get_event_item", id=number)["state"] == "cleared"


def test_what_is_typed_outlives_a_reload(admin: Tab) -> None:
    admin.open("#/terminals/demo-chiller-3?tab=commands")
    admin.page.get_by_role("textbox", name="Command").fill("SetPoint")
    admin.page.reload()
    expect(admin.page.get_by_role("textbox", name="Command")).to_have_value("SetPoint")


@pytest.fixture
def watched(admin: Tab) -> Tab:
    """The tab, in which an alert would be noticed."""
    admin.page.on("dialog", lambda dialog: admin.said.append(f"dialog: {dialog.message}"))
    return admin


def test_names_of_others_are_text(watched: Tab, hostile: list[str]) -> None:
    watched.open("#/terminals?search=hostile")
    expect(watched.page.get_by_role("row")).to_have_count(1 + len(hostile))
    assert watched.page.locator("main table img").count() == 0
    for uid, name in zip(hostile, HOSTILE_NAMES.values(), strict=True):
        watched.open(f"#/terminals/{uid}")
        expect(watched.page.get_by_role("heading", level=1)).to_contain_text(name[:60])
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type("hostile-markup")
    expect(watched.page.get_by_role("option").first).to_contain_text("<img src=x")
    assert watched.page.locator("dialog img").count() == 0


def test_lists_and_charts_are_printed_without_what_can_only_be_clicked(admin: Tab, plant: DemoPlant) -> None:
    page = admin.page
    admin.open("#/events?state=all")
    admin.settle()
    total = plant.call("get_event_list", page_size=1)["total_records"]
    rows = page.get_by_role("region", name="Events").locator("tbody tr:not(.gap)")
    assert rows.count() < total, "else all of them stand there anyway"
    page.emulate_media(media="print")
    expect(rows).to_have_count(min(100, total))
    expect(page.get_by_text(re.compile(rf"^{min(100, total)} of {total:,} rows$"))).to_be_visible()
    expect(page.locator("nav.side")).to_be_hidden()
    expect(page.locator(".window")).to_have_css("max-height", "none")
    page.emulate_media(media="screen")
    expect(page.locator("nav.side")).to_be_visible()
    assert rows.count() < total
    number = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0]["id"]
    admin.open(f"#/objects/{number}")
    page.wait_for_selector(".chart canvas")
    page.emulate_media(media="print")
    expect(page.get_by_role("toolbar")).to_be_hidden()
    expect(page.locator(".chart canvas").first).to_be_visible()
    write = page.locator("button", has_text="Write a record")
    expect(write).to_be_hidden()
    page.emulate_media(media="screen")
    expect(write).to_be_visible()
