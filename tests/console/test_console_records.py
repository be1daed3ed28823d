"""Records that people write while they look: objects, terminals, service records, dashboards on objects."""

from __future__ import annotations

import re
from pathlib import Path

from browser import Tab
from demo_plant import DemoPlant
from pictures import png
from playwright.sync_api import expect

GROUPS = "/object/api/v1/group/getList"


def object_id(plant: DemoPlant, name: str) -> str:
    rows = plant.call("get_object_list", where_and=[["name", "like", f"{name}%"]])["data"]
    return str(rows[0]["id"])


def test_an_object_is_made_changed_and_removed(admin: Tab, plant: DemoPlant) -> None:
    page = admin.page
    mapping = plant.call("get_mapping_list")[0]
    admin.open("#/objects")
    page.get_by_role("button", name="Add an object").click()
    dialog = page.get_by_role("dialog", name="Add an object")
    dialog.get_by_label("Name").fill("Spare pump")
    dialog.get_by_label(re.compile("^Terminals")).fill("demo-spare, nobody-1")
    dialog.get_by_label(re.compile("^Mapping")).select_option(mapping["uid"])
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("nobody-1")
    dialog.get_by_label(re.compile("^Terminals")).fill("demo-spare")
    dialog.get_by_label("Place on the map").fill("31.2990,120.5853")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Spare pump")
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit Spare pump")
    expect(dialog.get_by_label(re.compile("^Terminals"))).to_have_value("demo-spare")
    expect(dialog.get_by_label(re.compile("^Mapping"))).to_have_value(mapping["uid"])
    dialog.get_by_label("Name").fill("Spare pump 2")
    dialog.get_by_label("Model").fill("P-2")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Spare pump 2")
    expect(page.get_by_role("region", name="About")).to_contain_text(re.compile("P-2.*31.2990", re.DOTALL))
    made = plant.call("get_object_item", object_id=object_id(plant, "Spare pump 2"))
    assert (made["terminal_list"], made["mapping_id"], made["model"]) == (["demo-spare"], mapping["uid"], "P-2")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog", name="Remove Spare pump 2").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Objects")
    assert plant.call("get_object_list", where_and=[["name", "=", "Spare pump 2"]])["data"] == []


def test_a_service_record_is_written(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-operator", plant.password("demo-operator"))
    tab.open(f"#/objects/{object_id(plant, 'Chiller 2')}")
    page = tab.page
    expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    page.get_by_role("button", name="Write a record").click()
    dialog = page.get_by_role("dialog", name="Service record of Chiller 2")
    dialog.get_by_label("What was done").fill("Filter <b>changed</b>")
    dialog.get_by_label("Kind").select_option(label="regular maintenance")
    dialog.get_by_role("button", name="Save").click()
    records = page.get_by_role("region", name="Service records")
    expect(records).to_contain_text("regular maintenance: Filter <b>changed</b>")
    expect(records).to_contain_text("demo-operator")


def test_a_service_record_is_changed_and_removed(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-operator", plant.password("demo-operator"))
    tab.open(f"#/objects/{object_id(plant, 'Chiller 2')}")
    page = tab.page
    records = page.get_by_role("region", name="Service records")
    records.get_by_role("button", name="Write a record").click()
    page.get_by_role("dialog").get_by_label("What was done").fill("Looked at it")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    records.get_by_role("button", name="Looked at it").click()
    dialog = page.get_by_role("dialog", name="Change Looked at it")
    dialog.get_by_label("What was done").fill("Mended it")
    dialog.get_by_label("Description").fill("The <b>valve</b> stuck")
    dialog.get_by_role("button", name="Save").click()
    expect(records).to_contain_text("The <b>valve</b> stuck")
    records.get_by_role("button", name="Mended it").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog", name="Remove Mended it").get_by_role("button", name="Remove").click()
    expect(records).not_to_contain_text("Mended it")


def test_a_value_that_no_terminal_reports_is_written(admin: Tab, plant: DemoPlant) -> None:
    number = object_id(plant, "Chiller 3")
    admin.open(f"#/objects/{number}")
    page = admin.page
    card = page.get_by_role("region", name="Offline data")
    card.get_by_role("button", name="Write a value").click()
    dialog = page.get_by_role("dialog", name="Offline data of Chiller 3")
    dialog.get_by_label(re.compile("^Project")).select_option(label="a new project …")
    dialog.get_by_label("Name of the new project").fill("Oil <i>level</i>")
    dialog.get_by_label(re.compile("^Value")).fill("7.5")
    dialog.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("Oil <i>level</i> = 7.5")
    expect(card).to_contain_text("demo-admin")
    card.get_by_role("button", name="Write a value").click()
    dialog.get_by_label(re.compile("^Project")).select_option(label="Oil <i>level</i>")
    expect(dialog.get_by_label("Name of the new project")).to_have_count(0)
    dialog.get_by_label(re.compile("^Value")).fill("8")
    dialog.get_by_role("button", name="Save").click()
    expect(card.locator("li").first).to_contain_text("Oil <i>level</i> = 8")
    expect(card.locator("li")).to_have_count(2)
    card.get_by_role("button", name="Oil <i>level</i> = 7.5").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(card.locator("li")).to_have_count(1)
    assert admin.accessibility() == []


def test_files_of_an_object_are_added_opened_and_removed(admin: Tab, plant: DemoPlant, tmp_path: Path) -> None:
    number = object_id(plant, "Chiller 1")
    admin.open(f"#/objects/{number}")
    page = admin.page
    card = page.get_by_role("region", name="Files")
    expect(card).to_contain_text("No file belongs to it")
    named = {"manual.txt": b"turn it <b>off</b>", "plate.png": png(8, 8), "bad.exe": b"MZ"}
    files = {name: tmp_path / name for name in named}
    for name, content in named.items():
        files[name].write_bytes(content)
    chooser = card.locator("input[type=file]")
    chooser.set_input_files([files["manual.txt"], files["bad.exe"]])
    expect(card.get_by_role("alert")).to_contain_text("exe")
    expect(card).to_contain_text("No file belongs to it")
    chooser.set_input_files([files["manual.txt"], files["plate.png"]])
    expect(card.locator("li")).to_have_count(2)
    expect(card.get_by_role("alert")).to_have_count(0)
    with page.expect_download() as saving:
        card.get_by_role("link", name="Save manual.txt").click()
    assert saving.value.path().read_bytes() == named["manual.txt"]
    with page.context.expect_page() as opening:
        card.get_by_role("link", name="plate.png", exact=True).click()
    assert opening.value.evaluate("document.images.length") == 1
    opening.value.close()
    chooser.set_input_files(files["manual.txt"])
    expect(card.locator("li")).to_have_count(3)
    for left in (2, 1, 0):
        card.get_by_role("button", name=re.compile("^Remove the file")).first.click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(card.locator("li")).to_have_count(left)
    uploads = plant.data / "files"
    assert [each for each in uploads.rglob("*") if each.is_file() and each.read_bytes() in named.values()] == []


def test_an_upload_says_how_many_bytes_have_left_and_goes_on_where_the_page_is_left(
    admin: Tab, plant: DemoPlant, tmp_path: Path
) -> None:
    number = object_id(plant, "Chiller 2")
    admin.open(f"#/objects/{number}")
    page = admin.page
    card = page.get_by_role("region", name="Files")
    large, stopped = tmp_path / "Curves <b>of a year.txt", tmp_path / "stopped.txt"
    for file in (large, stopped):
        file.write_bytes(b"21.5\n" * 600_000)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 30_000}
    network = page.context.new_cdp_session(page)
    network.send("Network.emulateNetworkConditions", slow)
    card.locator("input[type=file]").set_input_files(large)
    under_way = page.locator(".toasts .work")
    expect(under_way).to_contain_text(re.compile(r"Curves <b>of a year\.txt.* [\d.]+ (k|M)B of 3\.0 MB", re.DOTALL))
    assert admin.accessibility() == []
    page.get_by_role("link", name="Terminals").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Terminals")
    expect(under_way).to_have_count(1)
    network.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    expect(page.locator(".toasts .notes")).to_contain_text("1 file added")
    expect(under_way).to_have_count(0)
    admin.open(f"#/objects/{number}")
    expect(card.locator("li")).to_contain_text("Curves <b>of a year.txt")
    network.send("Network.emulateNetworkConditions", slow)
    card.locator("input[type=file]").set_input_files(stopped)
    page.get_by_role("button", name="Stop: stopped.txt").click()
    expect(under_way).to_have_count(0)
    network.detach()
    expect(card.locator("input[type=file]")).to_be_enabled()
    expect(card.get_by_role("alert")).to_have_count(0)
    expect(card.locator("li")).to_have_count(1)


def test_who_may_only_look_sees_files_and_writes_nothing(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-viewer", plant.password("demo-viewer"))
    tab.open(f"#/objects/{object_id(plant, 'Chiller 1')}")
    expect(tab.page.get_by_role("region", name="Files")).to_be_visible()
    for name in ("Files", "Service records", "Offline data"):
        expect(tab.page.get_by_role("region", name=name).get_by_role("button")).to_have_count(0)
    expect(tab.page.locator("input[type=file]")).to_have_count(0)


def test_a_dashboard_is_put_on_an_object_and_shows_it(admin: Tab, plant: DemoPlant) -> None:
    (dashboard,) = plant.call("get_dashboard_list")["data"]
    admin.open(f"#/objects/{object_id(plant, 'Chiller 3')}")
    page = admin.page
    card = page.get_by_role("region", name="Dashboards")
    expect(card).to_contain_text("No dashboard is on it")
    card.get_by_role("button", name="Put one on it").click()
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    card.get_by_role("link", name=dashboard["name"]).click()
    expect(page.get_by_role("link", name="For Chiller 3")).to_be_visible()
    page.get_by_role("link", name="For Chiller 3").click()
    card.get_by_role("button", name=re.compile("^Take .* off$")).click()
    expect(card).to_contain_text("No dashboard is on it")


def test_all_events_of_an_object_are_its_own(admin: Tab, plant: DemoPlant) -> None:
    number = object_id(plant, "Chiller 1")
    mine = plant.call("get_event_list", object_id=number, page_size=1)["total_records"]
    assert 0 < mine < plant.call("get_event_list", page_size=1)["total_records"]
    admin.open(f"#/objects/{number}")
    page = admin.page
    page.get_by_role("region", name="Events and labels").get_by_role("link", name="All").click()
    expect(page.get_by_role("button", name="Chiller 1")).to_be_visible()
    table = page.get_by_role("region", name="Events").get_by_role("table")
    expect(table).to_have_attribute("aria-rowcount", str(mine + 1))
    page.get_by_role("button", name="Chiller 1").click()
    expect(table).not_to_have_attribute("aria-rowcount", str(mine + 1))


def test_a_terminals_record_is_changed(admin: Tab, plant: DemoPlant) -> None:
    config = plant.call("get_terminal_config_list")[0]["uid"]
    plant.add_terminal("edited-1", config, name="Before")
    admin.open("#/terminals/edited-1")
    page = admin.page
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit Before")
    dialog.get_by_label("Name", exact=True).fill("After <i>it</i>")
    dialog.get_by_label("Tags").fill("roof, north")
    dialog.get_by_label("Allowed").select_option("pub")
    dialog.get_by_label("Topics").fill("pub:r,a")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("After <i>it</i>")
    found = plant.call("get_terminal_item", uid="edited-1")
    assert (found["name"], sorted(found["tags"]), found["access"]) == ("After <i>it</i>", ["north", "roof"], "pub")
    assert (found["topic"], found["mode"], found["config_id"], found["pin"]) == (
        "pub:r,a",
        "pwd",
        config,
        "pin-edited-1",
    )
    page.get_by_role("button", name="Edit").click()
    again = page.get_by_role("dialog", name="Edit After <i>it</i>")
    again.get_by_label("Topics").fill("nonsense:r")
    again.get_by_role("button", name="Save").click()
    expect(again.get_by_role("alert")).to_contain_text("topic")


def test_what_is_wanted_of_a_terminal_is_changed_where_it_differs(admin: Tab, plant: DemoPlant) -> None:
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    made = plant.call("create_terminal_config", name="Night", deliver=0, config_script={"interval": 30}, **by)
    for uid in ("wanted-1", "wanted-2"):
        plant.add_terminal(uid, made["uid"])
    admin.open("#/terminals/wanted-1")
    page = admin.page
    card = page.get_by_role("region", name="Configuration wanted and reported").first
    expect(card).to_contain_text("Its configuration is not sent to it")
    card.get_by_role("button", name="Change what is wanted").click()
    dialog = page.get_by_role("dialog", name="Configuration Night")
    expect(dialog).to_contain_text("2 terminals have this configuration")
    script = dialog.get_by_label("What terminals should have (JSON)")
    script.fill('{"interval": 10, }')
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("config_script")
    script.fill('{"interval": 10}')
    dialog.get_by_label("Send it to the terminals").check()
    dialog.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("waits")
    found = plant.call("get_terminal_config_item", uid=made["uid"])
    assert (found["config_script"], found["deliver"], found["name"]) == ({"interval": 10}, 1, "Night")


def test_an_object_is_put_into_a_group_that_is_made_renamed_and_removed(admin: Tab, plant: DemoPlant) -> None:
    page = admin.page
    admin.open("#/objects")
    groups = page.get_by_role("navigation", name="Groups")
    groups.get_by_role("button", name="New group").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Roof <i>units</i>")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(groups.get_by_role("link", name="Roof <i>units</i>")).to_be_visible()
    admin.open(f"#/objects/{object_id(plant, 'Chiller 2')}")
    about = page.get_by_role("region", name="About")
    about.get_by_label("Put into a group").select_option(label="Roof <i>units</i>")
    about.get_by_role("link", name="Roof <i>units</i>").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("Chiller 2")
    groups.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Roof")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(groups.get_by_role("link", name="Roof", exact=True)).to_be_visible()
    groups.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog", name="Remove Roof").get_by_role("button", name="Remove").click()
    expect(groups.get_by_role("link", name="Roof", exact=True)).to_have_count(0)
    expect(page.locator("tbody")).to_contain_text("Chiller 1")


def test_groups_are_a_tree(admin: Tab, plant: DemoPlant) -> None:
    page = admin.page
    admin.open("#/objects")
    groups = page.get_by_role("navigation", name="Groups")
    for name in ("Campus / North / Roof", "Campus / North", "Campus / South"):
        groups.get_by_role("link", name="All objects").click()
        groups.get_by_role("button", name="New group").click()
        page.get_by_role("dialog").get_by_label(re.compile("^Name")).fill(name)
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    roof = groups.locator("li li li").get_by_role("link", name="Roof", exact=True)
    expect(roof).to_be_visible()
    (group,) = plant.client.component("GET", GROUPS, where_and='[["name", "=", "Campus / North / Roof"]]')["data"]
    for name in ("Chiller 2", "Chiller 3"):
        member = {"group_id": group["id"], "object_id": int(object_id(plant, name))}
        plant.client.component("POST", "/object/api/v1/groupmap/add", body=member)
    groups.get_by_role("link", name="North", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(2)
    groups.get_by_role("link", name="Campus", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(2)
    groups.get_by_role("link", name="South", exact=True).click()
    expect(page.get_by_text("Nothing found")).to_be_visible()
    groups.get_by_role("link", name="North", exact=True).click()
    groups.get_by_role("button", name="Rename").click()
    dialog = page.get_by_role("dialog", name="Group North")
    dialog.get_by_label(re.compile("^Name")).fill("Old town")
    dialog.get_by_label("Below").select_option(label="Campus / South")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(page.locator("tbody tr")).to_have_count(2)
    names = {each["name"] for each in plant.client.component("GET", GROUPS, page_size="100")["data"]}
    assert {"Campus / South / Old town", "Campus / South / Old town / Roof", "Campus / South"} <= names
    groups.get_by_role("button", name="What is below South").click()
    expect(groups.get_by_role("link", name="Old town", exact=True)).to_have_count(0)
    assert admin.accessibility() == []
