"""A second company of the demo's plant, with a record of each kind that pages show, all of which carry one text."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from typing import Any

from demo_plant import DemoPlant
from routes import View, views_of

from running import wait_for
from support import require_program

PASSWORD = "long enough for it"
HOSTILE_NAMES = {
    "markup": "<img src=x onerror=alert(1)>&lt;b&gt;'\"",
    "direction": "abc\u202edef\u202c \u0627\u0644\u0645\u0636\u062e\u0629",
    "emoji": "Pump \U0001f600\U0001f469\u200d\U0001f680 \u4e00\u53f7",
    "long": "x" * 64,
}
"""What somebody may call a terminal."""
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


@dataclass(frozen=True)
class Texts:
    """What stands in the records.

    Attributes:
        uid: of its terminal, and part of other names.
        name: of everything, at most 64 characters.
        short: where 16 are the most.
        command: a name without characters that control something.
        long: what a terminal says, which nobody can forbid, and what people write.
        client: an unknown client's id.
    """

    uid: str
    name: str
    short: str
    command: str
    long: str
    client: str

    @property
    def username(self) -> str:
        return f"{self.uid}-admin"


@dataclass(frozen=True)
class OtherCompany:
    """Its administrator's login, and the records that pages are of, by kind."""

    records: dict[str, str]
    username: str
    password: str = PASSWORD

    def views(self, plant: DemoPlant) -> list[View]:
        """All views, of its records; the plant's client is the demo company's admin afterwards."""
        plant.login(self.username, self.password)
        views = [replace(each, route=self.route(each.route)) for each in views_of(plant)]
        plant.login("demo-admin", plant.password("demo-admin"))
        return views

    def route(self, route: str) -> str:
        """A route of the demo's plant, on this company's records."""
        if route.endswith("event=1"):
            return route.removesuffix("1") + self.records["event"]
        page, _, rest = route.removeprefix("#/").partition("/")
        path, _, query = rest.partition("?")
        kind = {"control": "control", "retainers": "retainers"}.get(path.partition("/")[0], page)
        if not path or kind not in self.records or path in ("log", "labels", "handover", "retainers", "control"):
            return route
        own = kind in ("terminals", "objects", "customers")
        at = self.records[kind] if own else f"{kind}/{self.records[kind]}"
        return f"#/{page}/{at}" + (f"?{query}" if query else "")


def plant_company(plant: DemoPlant, texts: Texts) -> OtherCompany:
    """Makes it, and has its terminal report; the plant's client is the demo company's admin afterwards."""
    plant.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    company = plant.call("create_company", name=texts.name, contact=texts.name, description=texts.name)
    user = {"username": texts.username, "password": PASSWORD, "role": "admin", "description": texts.name}
    plant.call("create_user", **user, permission_company_id=company["id"])
    plant.login(texts.username, PASSWORD)
    records = _records(plant, texts)
    _report(plant, texts)
    number = wait_for(lambda: plant.call("get_event_list", page_size=1)["data"], "the event", timeout_s=60)[0]["id"]
    plant.call("comment_event", id=number, comment=texts.long[:1_000])
    plant.login("demo-admin", plant.password("demo-admin"))
    return OtherCompany({**records, "event": str(number)}, texts.username)


def _records(plant: DemoPlant, texts: Texts) -> dict[str, str]:
    name, rows_of = texts.name, _mapping_rows(texts.name)
    files = {"mcu_file": "http://files.example/a.bin", "mcu_version": "2.1"}
    config = plant.call("create_terminal_config", name=name, description=name, **files, **BY)
    plant.add_terminal(texts.uid, config["uid"], name=name, description=name, maker=name[:64])
    mapping = plant.call("create_mapping", name=name, description=name, script=rows_of, **BY)
    rows = [["SP", name, name, "OBJ", "$AdapterID-1.t", "1"]]
    control = plant.call("create_control", name=name, description=name, script=rows, **BY)
    customer = plant.call("create_customer", name=name, description=name, contact=name, is_available=1)
    used = {"mapping_id": mapping["uid"], "control_id": control["uid"], "customer_id": customer["uid"]}
    about = {"description": name, "province": texts.short, "city": texts.short, "gis": "31.2990,120.5853"}
    made = plant.call("create_object", name=name, **about, **used, terminal_list=[texts.uid], **BY)
    fed = str(made["id"])
    retained = [["T", name, name, "1000", "0"]]
    retainer = plant.call("create_retainer", name=name, description=name, object_list=[fed], script=retained, **BY)
    scripts = {"statistics": [["T_AVG", "avg", "T"]], "calculate": [["T_F", "T_AVG * 9"]]}
    for kind, script in scripts.items():
        plant.call(f"create_{kind}", name=name, description=name, object_list=[fed], script=script, **BY)
    plant.call("create_balance", name=name, object_list=[fed], target_code="T", input_codes=["T"], window=86400, **BY)
    rule = {"kinds": ["event"], "channel": "webhook", "url": "https://hooks.example/", "secret": "no word, but long"}
    plant.call("create_rule", name=name, **rule)
    plant.call("create_campaign", name=name, config_id=config["uid"], unit="MCU", version="2.1")
    plant.call("create_api_key", name=name[:64])
    plant.call("create_claim_key", name=name[:64])
    plant.call("create_dashboard", name=name, category=texts.short, script=_dashboard(fed, name), **BY)
    plant.call("publish_terminal_command", terminal_id=texts.uid, command=texts.command, value=texts.command)
    plant.call("write_handover", hours=8, notes=texts.long[:2_000])
    plant.call("put_out_of_service", uids=[texts.uid], minutes=120, reason=name)
    plant.call("put_into_service", uids=[texts.uid])
    others = {"customers": customer, "mapping": mapping, "control": control, "retainers": retainer}
    ids = {kind: str(record["id"]) for kind, record in others.items()}
    return {"objects": fed, "terminals": texts.uid, **ids}


def _mapping_rows(name: str) -> list[list[str]]:
    """The rows of the mapping."""
    return [
        ["T", name, name, "STA", "$AdapterID-1.t", ""],
        ["TEXT", name, name, "STA", "$AdapterID-1.text", ""],
        ["HOT", name, name, "EVNT", "$AdapterID-1.t", "", "x > 80"],
    ]


def _dashboard(object_id: str, name: str) -> dict[str, Any]:
    shown = {"values": [{"objectId": object_id, "code": "T"}]}
    place = {"pos": [0, 0], "len": [1, 1]}
    widget = {"type": "vlu", "name": name, "title": name, "object_id": object_id, "xys": place, "attribute": shown}
    return {"Dashboard-1": {"name": name, "row": 1, "col": 1, "data": [widget]}}


def _report(plant: DemoPlant, texts: Texts) -> None:
    """What the terminal says: names and texts of its own, 10,000 characters long, and one that is refused."""
    login = ["-i", texts.uid, "-u", f"u-{texts.uid}", "-P", f"pin-{texts.uid}"[:16], "-t", f"g/{texts.uid}/r"]
    said = {"t": 99, "text": texts.long, texts.command: texts.name}
    _publish(plant, [*login, "-r"], json.dumps(said))
    _publish(plant, login, f"no JSON {texts.long}")
    _publish(plant, ["-i", texts.client, "-u", texts.name, "-P", "x", "-t", "a"], "{}")


def _publish(plant: DemoPlant, arguments: list[str], payload: str) -> None:
    command = [require_program("mosquitto_pub"), "-p", str(plant.mqtt), "-q", "1", *arguments, "-s"]
    subprocess.run(command, input=payload.encode(), capture_output=True, timeout=60, check=False)
