"""Many at once: events, labels, terminals; importing, registering, finding anything by its name."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, Route, expect

from mqtt_bytes import login, publish
from running import wait_for

HOT, WET, DRY = "Runs <i>hot</i>", "Runs wet", "Runs <b>dry</b>"
"""Names of events that are raised, and of a label that is open."""


@pytest.fixture(scope="module")
def happened(plant: DemoPlant) -> None:
    """Two events and a label of an object of one's own: the demo's come and go by themselves."""
    uid, by = "label-1", {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    plant.add_terminal(uid, plant.call("get_terminal_config_list")[0]["uid"])
    rows = [
        ["RUN", "", "", "STA", "$AdapterID-1.run", ""],
        ["HOT", HOT, "过热", "EVNT", "$AdapterID-1.run", "", "x > 0"],
        ["WET", WET, "过湿", "EVNT", "$AdapterID-1.run", "", "x > 0"],
    ]
    mapping = plant.call("create_mapping", name="of labels", script=rows, **by)["uid"]
    made = plant.call("create_object", name="of labels", mapping_id=mapping, terminal_list=[uid])["uid"]
    script = [["RUN", DRY, "空转", "1", ""]]
    retainer = plant.call("create_retainer", name="of labels", object_list=[made], script=script)["uid"]
    plant.call("start_retainer", uid=retainer)
    with socket.create_connection(("127.0.0.1", plant.mqtt)) as connection:
        connection.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
        assert connection.recv(4) == b"\x20\x02\x00\x00"
        connection.sendall(publish(f"g/{uid}/r", b'{"run": 1}'))
        assert connection.recv(4)[:2] == b"\x40\x02"
    wait_for(lambda: _is_open(plant) and len(_own(plant)) == 2, "the label is open, and the events are raised")


def _own(plant: DemoPlant) -> list[dict[str, Any]]:
    """The two events."""
    return list(plant.call("get_event_list", where_in=["code", ["HOT", "WET"]], page_size=100)["data"])


def _is_open(plant: DemoPlant) -> bool:
    return any(each["code"] == "RUN" for each in plant.call("get_open_retainer_list")["data"])


@pytest.mark.usefixtures("happened")
def test_events_are_shelved_commented_and_acknowledged_together(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/events")
    for name in (HOT, WET):
        admin.page.get_by_role("checkbox", name=f"Choose {name}").check()
    bar = admin.page.get_by_role("toolbar")
    expect(bar).to_contain_text("2 chosen")
    bar.get_by_role("button", name="Shelve").click()
    dialog = admin.page.get_by_role("dialog")
    dialog.get_by_label("For").select_option("8")
    dialog.get_by_label("Comment").fill("until the <b>fitter</b> is there")
    dialog.get_by_role("button", name="Shelve").click()
    expect(dialog).to_have_count(0)
    assert all(each["shelved_until"] for each in _own(plant))
    assert {each["comments"][-1]["text"] for each in _own(plant)} == {"until the <b>fitter</b> is there"}
    expect(admin.page.get_by_role("row").filter(has_text="shelved")).to_have_count(2)
    admin.page.get_by_role("checkbox", name=f"Choose {WET}").check()
    bar.get_by_role("button", name="Acknowledge").click()
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(dialog).to_have_count(0)
    assert {each["code"]: each["state"] for each in _own(plant)} == {"HOT": "raised", "WET": "acknowledged"}


@pytest.mark.usefixtures("happened")
def test_an_event_is_searched_shelved_alone_and_leads_to_its_object(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/events?state=all")
    admin.page.get_by_role("searchbox").fill("uns <i>ho")
    expect(admin.page.get_by_role("row")).to_have_count(2)
    admin.page.get_by_role("link", name=HOT).click()
    dialog = admin.page.get_by_role("dialog", name=HOT)
    expect(dialog.get_by_role("link", name="of labels")).to_have_attribute("href", re.compile(r"^#/objects/\d+$"))
    dialog.get_by_label("For").select_option("24")
    dialog.get_by_role("button", name="Shelve").click()
    expect(dialog).to_contain_text("Shelved until")
    dialog.get_by_label("For").select_option("0")
    dialog.get_by_role("button", name="take off the shelf").click()
    expect(dialog).not_to_contain_text("Shelved until")
    assert {each["code"]: each["shelved_until"] for each in _own(plant)}["HOT"] is None
    dialog.get_by_role("button", name="Close").click()
    admin.page.get_by_role("searchbox").fill("no such event")
    expect(admin.page.get_by_text("Nothing found")).to_be_visible()


@pytest.mark.usefixtures("happened")
def test_what_is_chosen_while_something_is_under_way_stays(admin: Tab, plant: DemoPlant) -> None:
    """It was set back when the answer came: whoever took an event off the shelf had it shelved for four hours."""
    held: list[Route] = []
    admin.page.route("**/apiproxy/api/shelve_events", lambda route: held.append(route), times=1)
    admin.open("#/events?state=all")
    admin.page.get_by_role("link", name=HOT).first.click()
    dialog = admin.page.get_by_role("dialog", name=HOT)
    dialog.get_by_label("For").select_option("24")
    with admin.page.expect_request("**/apiproxy/api/shelve_events"):
        dialog.get_by_role("button", name="Shelve").click()
    dialog.get_by_label("For").select_option("0")
    dialog.get_by_label("Comment").fill("the fitter was there")
    held.pop().continue_()
    expect(dialog).to_contain_text("Shelved until")
    expect(dialog.get_by_role("button", name="take off the shelf")).to_be_enabled()
    expect(dialog.get_by_label("Comment")).to_have_value("the fitter was there")
    dialog.get_by_role("button", name="take off the shelf").click()
    expect(dialog).not_to_contain_text("Shelved until")
    expect(dialog.get_by_label("For")).to_have_value("4")
    expect(dialog.get_by_label("Comment")).to_have_value("")


def test_an_event_leads_to_a_rule_of_it(admin: Tab, plant: DemoPlant) -> None:
    event = plant.call("get_event_list", page_size=1)["data"][0]
    admin.open(f"#/events?state=all&event={event['id']}")
    admin.page.get_by_role("link", name="Make a rule of it").click()
    dialog = admin.page.get_by_role("dialog", name="New rule")
    expect(dialog.get_by_label("Codes")).to_have_value(event["code"])
    dialog.get_by_label("Name").fill("Of what I saw")
    dialog.get_by_label("Channel").select_option("webhook")
    dialog.get_by_label("Address of the webhook").fill("https://hooks.example/x")
    dialog.get_by_label("Secret of the webhook").fill("no word, but long")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    rule = next(each for each in plant.call("get_rule_list")["data"] if each["name"] == "Of what I saw")
    assert (rule["codes"], rule["kinds"]) == ([event["code"]], ["event"])


def test_events_are_counted_by_day_and_taken_away_as_a_file(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/events?state=all")
    counts = plant.call("get_event_quantity_by_day", day=14)
    day = next(each for each in counts["date"] if counts["data"].get(each))
    column = admin.page.get_by_role("button", name=re.compile(rf"^[1-9]\S* {day.replace('/', '-')}$"))
    column.click()
    admin.page.wait_for_url(re.compile(f"day=.{{4}}-{day.replace('/', '-')}"))
    expect(admin.page.get_by_role("table", name="Events")).to_have_attribute(
        "aria-rowcount", str(counts["data"][day] + 1)
    )
    with admin.page.expect_download() as started:
        admin.page.get_by_role("button", name="CSV").click()
    lines = started.value.path().read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("id,created,severity")
    assert len(lines) == counts["data"][day] + 1


@pytest.mark.usefixtures("happened")
def test_a_shift_is_handed_over_in_writing_and_on_paper(admin: Tab, plant: DemoPlant, browser: Browser) -> None:
    admin.open("#/events/handover")
    page = admin.page
    page.get_by_label("Shift since").select_option("72")
    expect(page.get_by_role("region", name="Still open")).to_contain_text("Jam")
    expect(page.get_by_role("region", name="Done")).to_contain_text(re.compile(r"[1-9]\d* events handled"))
    shift = plant.call("get_shift", hours=72)
    first = shift["handled"][0]
    when = max(first["acknowledged_at"] or "", first["cleared_at"] or "")
    expect(page.get_by_role("region", name="Done").get_by_role("listitem").first).to_contain_text(when)
    page.get_by_label("Notes").fill("Valve 3 is shut.\n\u003cb\u003e not bold \u003c/b\u003e")
    page.emulate_media(media="print")
    expect(page.get_by_role("region", name="Still open")).to_be_visible()
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Hand over").click()
    expect(page.locator(".written")).to_have_text("Valve 3 is shut.\n\u003cb\u003e not bold \u003c/b\u003e")
    kept = page.get_by_role("region", name="Still open").inner_text()
    other = open_tab(browser, plant.url)
    other.open("#/events/handover")
    other.login("demo-viewer", plant.password("demo-viewer"))
    expect(other.page.get_by_label("Notes")).to_have_count(0)
    other.page.get_by_role("link", name="demo-admin").first.click()
    expect(other.page.locator(".written")).to_contain_text("Valve 3 is shut.")
    assert other.page.get_by_role("region", name="Still open").inner_text() == kept
    assert other.complaints() == []
    other.page.context.close()


def test_a_label_is_closed_with_others(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/events/labels")
    closed = plant.call("get_audit_list", entity="label")["total_records"]
    row = admin.page.get_by_role("row").filter(has_text=DRY)
    expect(row.get_by_role("link")).to_have_attribute("href", re.compile(r"^#/objects/\d+$"))
    expect(row.get_by_role("link")).to_have_text("of labels")
    admin.page.get_by_role("checkbox", name=f"Choose {DRY}").check()
    admin.page.get_by_role("toolbar").get_by_role("button", name="Close").click()
    dialog = admin.page.get_by_role("dialog", name="Close 1 label")
    dialog.get_by_role("button", name="Close", exact=True).last.click()
    expect(dialog).to_have_count(0)
    assert not _is_open(plant)
    assert plant.call("get_audit_list", entity="label")["total_records"] == closed + 1


def test_terminals_are_tagged_together_and_by_what_the_filter_finds(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/terminals?search=demo-meter")
    expect(admin.page.get_by_role("row")).to_have_count(5)
    admin.page.get_by_role("checkbox", name="Choose ").first.check()
    bar = admin.page.get_by_role("toolbar")
    bar.get_by_label("all 4 that the filter finds").check()
    bar.get_by_role("button", name="Tags").click()
    dialog = admin.page.get_by_role("dialog", name="Tags: 4 terminals")
    dialog.get_by_label("Tags").fill("metering, hall")
    dialog.get_by_role("button", name="Tags").click()
    expect(dialog).to_have_count(0)
    tagged = [each["uid"] for each in plant.call("get_terminal_list", tags=["metering"], page_size=100)]
    assert len(tagged) == 4
    assert all(each.startswith("demo-meter") for each in tagged)
    admin.open("#/terminals")
    admin.page.get_by_label("Tag", exact=True).fill("metering")
    admin.page.wait_for_url(re.compile("tag=metering"))
    expect(admin.page.get_by_role("row")).to_have_count(5)
    expect(admin.page.locator("#terminal-tags option")).to_have_count(2)
    admin.page.get_by_label("Tag", exact=True).fill("")
    expect(admin.page.get_by_role("row").nth(6)).to_be_visible()


def test_several_terminals_that_are_chosen_are_changed_together_and_no_other(admin: Tab, plant: DemoPlant) -> None:
    uids = [f"several-{n}" for n in range(3)]
    config, other = plant.add_config("several"), plant.add_config("several others")
    for uid in uids:
        plant.add_terminal(uid, config)
    page, bar = admin.page, admin.page.get_by_role("toolbar")
    admin.open("#/terminals?search=several-")

    def choose(action: str, *, option: str = "") -> None:
        for uid in uids[:2]:
            page.get_by_role("checkbox", name=f"Choose {uid}").check()
        expect(bar).to_contain_text("2 terminals chosen")
        bar.get_by_role("button", name=action, exact=True).click()
        dialog = page.get_by_role("dialog", name=f"{action}: 2 terminals")
        if option:
            dialog.get_by_role("combobox").select_option(label=option)
        dialog.get_by_role("button", name=action, exact=True).click()
        expect(dialog).to_have_count(0)

    def of_all(name: str) -> list[object]:
        return [plant.call("get_terminal_item", uid=uid)[name] for uid in uids]

    choose("Disable")
    expect(page.get_by_role("status").filter(has_text="2 changed, 0 were so already")).to_be_visible()
    assert of_all("is_available") == [0, 0, 1]
    choose("Enable")
    assert of_all("is_available") == [1, 1, 1]
    choose("Configuration", option="several others")
    assert of_all("config_id") == [other, other, config]
    choose("Remove")
    expect(page.get_by_role("row").filter(has_text="several-")).to_have_count(1)
    assert [plant.ask("get_terminal_item", uid=uid)["code"] for uid in uids] == [10404, 10404, 200]
    expect(bar).to_have_count(0)
    plant.call("delete_terminals", uids=uids[2:])
    for made in (config, other):
        plant.call("delete_terminal_config", uid=made)


def test_terminals_are_out_of_service_with_a_reason_and_back(admin: Tab, plant: DemoPlant) -> None:
    uid = "demo-meter-boiler"
    admin.open(f"#/terminals/{uid}")
    admin.page.get_by_role("button", name="Out of service").click()
    dialog = admin.page.get_by_role("dialog", name="Out of service: 1 terminal")
    dialog.get_by_label("For").select_option("8")
    dialog.get_by_label("Reason").fill("the <b>meter</b> is calibrated")
    dialog.get_by_role("button", name="Out of service").click()
    expect(dialog).to_have_count(0)
    note = admin.page.get_by_role("note")
    expect(note).to_contain_text("the <b>meter</b> is calibrated")
    expect(note).to_contain_text("demo-admin")
    assert admin.accessibility() == []
    admin.open("#/terminals?search=demo-meter")
    expect(admin.page.get_by_role("row")).to_have_count(5)
    for place in range(2):
        admin.page.get_by_role("checkbox", name="Choose ").nth(place).check()
    admin.page.get_by_role("toolbar").get_by_role("button", name="Out of service").click()
    dialog = admin.page.get_by_role("dialog", name="Out of service: 2 terminals")
    dialog.get_by_role("button", name="Out of service").click()
    expect(dialog).to_be_visible()  # a reason is required
    dialog.get_by_label("Reason").fill("all of them")
    dialog.get_by_role("button", name="Out of service").click()
    expect(dialog).to_have_count(0)
    out = {each["uid"] for each in plant.call("get_terminal_list", out_of_service=1)}
    admin.open("#/overview")
    line = admin.page.get_by_role("row").filter(has_text="out of service")
    expect(line).to_contain_text(str(len(out)))
    line.get_by_role("link").first.click()
    expect(admin.page.get_by_role("table", name="Terminals")).to_have_attribute("aria-rowcount", str(len(out) + 1))
    admin.open(f"#/terminals/{uid}")
    admin.page.get_by_role("button", name="Back into service").click()
    expect(note).to_have_count(0)
    assert plant.call("get_terminal_item", uid=uid)["out_of_service"] is None
    plant.call("put_into_service", uids=sorted(out - {uid}))


def test_a_terminals_packets_are_traced_live(admin: Tab, plant: DemoPlant) -> None:
    uid = "trace-1"
    plant.add_terminal(uid, plant.call("get_terminal_config_list")[0]["uid"])
    admin.open(f"#/terminals/{uid}?tab=trace")
    admin.page.get_by_label("For").select_option("1")
    admin.page.get_by_role("button", name="Trace").click()
    expect(admin.page.get_by_text("No packet has passed yet")).to_be_visible()
    with socket.create_connection(("127.0.0.1", plant.mqtt)) as connection:
        connection.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
        assert connection.recv(4) == b"\x20\x02\x00\x00"
        connection.sendall(publish(f"g/{uid}/r", b'{"t": 7, "pin": "4711", "is": "<b>text</b>"}'))
        assert connection.recv(4)[:2] == b"\x40\x02"
        shown = admin.page.get_by_role("list", name="Packets as they pass")
        expect(shown).to_contain_text('{"t": 7, "pin": "***", "is": "<b>text</b>"}')
        expect(shown.get_by_role("listitem").filter(has_text="PUBACK")).to_have_count(1)
        admin.page.get_by_role("button", name="Pause").click()
        connection.sendall(b"\xc0\0")
        assert connection.recv(2) == b"\xd0\0"
        admin.page.get_by_label("Packets", exact=True).select_option("PUBLISH")
        expect(shown.get_by_role("listitem")).to_have_count(1)
        admin.page.get_by_label("Packets", exact=True).select_option("")
        expect(shown).not_to_contain_text("PINGREQ")
        admin.page.get_by_role("button", name="Go on").click()
        expect(shown.get_by_role("listitem").filter(has_text="PINGRE")).to_have_count(2)
    assert admin.accessibility() == []
    admin.page.get_by_role("button", name="Stop").click()
    expect(admin.page.get_by_text("Nothing is traced")).to_be_visible()
    assert plant.call("get_trace", terminal_id=uid)["until"] is None


def test_an_import_is_tried_first_and_says_which_cell_is_wrong(admin: Tab, plant: DemoPlant) -> None:
    config = plant.call("get_terminal_config_list")[0]["uid"]
    head = "uid,name,type,config_id,mode,username,pin,access,created_by"
    good = f"import-1,Pump one,Other,{config},pwd,import-1,pin-of-one-1,all,1"
    bad = f"import-2,Pump two,Other,{config},sideways,import-2,pin-of-two-2,all,1"
    admin.open("#/terminals")
    admin.page.get_by_role("button", name="Import").click()
    dialog = admin.page.get_by_role("dialog", name="Import terminals")
    dialog.get_by_label("Rows").fill(f"{head}\n{good}\n{bad}")
    dialog.get_by_role("button", name="Try").click()
    row = dialog.get_by_role("row").nth(1)
    expect(row).to_contain_text("mode")
    expect(row).to_contain_text("sideways")
    expect(row.get_by_role("cell").first).to_have_text("3")
    dialog.get_by_label("Rows").fill(f"{head}\n{good}")
    dialog.get_by_role("button", name="Try").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 row: 1 new")
    assert plant.ask("get_terminal_item", uid="import-1")["code"] == 10404
    dialog.get_by_role("button", name="Import 1 row").click()
    expect(dialog).to_have_count(0)
    assert plant.call("get_terminal_item", uid="import-1")["name"] == "Pump one"


def test_a_long_file_is_imported_whole_and_its_dialog_may_be_closed(
    admin: Tab, plant: DemoPlant, tmp_path: Path
) -> None:
    config = plant.call("get_terminal_config_list")[0]["uid"]
    head = "uid,name,type,config_id,mode,username,pin,access,created_by"
    rows = [f"many-{n},\u6cf5 {n},Other,{config},pwd,many-{n},pin-of-{n:08},all,1" for n in range(1_000)]
    file = tmp_path / "many.csv"
    file.write_text(
        "\n".join([head, *rows, rows[-1].replace("many-999,", "many-1000,").replace("pwd", "sideways")]), "utf-16"
    )
    page = admin.page
    admin.open("#/terminals")
    page.get_by_role("button", name="Import").click()
    dialog = page.get_by_role("dialog", name="Import terminals")
    dialog.get_by_label("Choose a file", exact=True).set_input_files(file)
    expect(dialog).to_contain_text(re.compile(r"many\.csv, 1\d\d kB"))
    expect(dialog.get_by_label("Rows")).to_have_count(0)
    dialog.get_by_role("button", name="Try").click()
    row = dialog.get_by_role("row").nth(1)
    wrong = ["1002", "mode", "sideways", re.compile("sideways|pwd")]
    expect(row.get_by_role("cell")).to_have_text(wrong, timeout=60_000)
    dialog.get_by_label("Choose a file", exact=True).dispatch_event("cancel")  # who gives up choosing stays in it
    file.write_text("\n".join([head, *rows]), "utf-16")
    dialog.get_by_label("Choose a file", exact=True).set_input_files(file)
    dialog.get_by_role("button", name="Try").click()
    expect(dialog.get_by_role("status")).to_contain_text("1,000 rows: 1,000 new", timeout=60_000)
    dialog.get_by_role("button", name="Import 1,000 rows").click()
    dialog.get_by_role("button", name="Close").last.click()
    page.get_by_role("link", name="Events").first.click()
    expect(page.locator(".toasts .notes")).to_contain_text("1,000 created", timeout=60_000)
    assert plant.call("get_terminal_item", uid="many-999")["name"] == "\u6cf5 999"
    imported = {"where_and": [["uid", "like", "many-%"]]}
    assert plant.call("delete_terminals", filter=imported, expected=1_000)["changed"] == 1_000


def test_an_unknown_terminal_is_registered_in_one_step(admin: Tab) -> None:
    admin.open("#/terminals")
    admin.page.get_by_role("button", name="Add a terminal").click()
    dialog = admin.page.get_by_role("dialog", name="Add a terminal")
    dialog.get_by_label("Uid").fill("fresh-1")
    dialog.get_by_role("button", name="Register").click()
    once = admin.page.get_by_role("dialog", name="How fresh-1 logs in")
    expect(once.locator("pre")).to_contain_text("client id: fresh-1")
    once.get_by_role("button", name="I have kept it").click()
    admin.page.wait_for_url(re.compile("#/terminals/fresh-1"))


def test_anything_that_has_a_name_is_found(admin: Tab, plant: DemoPlant) -> None:
    found = plant.call("search", text="chiller", kinds=["object"])[0]
    admin.page.keyboard.press("Control+k")
    admin.page.keyboard.type("chiller")
    expect(admin.page.get_by_role("option").filter(has_text="object").first).to_contain_text(
        re.compile("chiller", re.IGNORECASE)
    )
    admin.page.get_by_role("option").filter(has_text=found["name"]).filter(has_text="object").first.click()
    admin.page.wait_for_url(re.compile("#/objects/"))
