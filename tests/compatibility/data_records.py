"""The records of the kept data: companies, users, terminals, objects, and everything that is set up by hand."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from data_server import ADMIN, Api
from data_terminals import pin_of, username_of

AUTHORS = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
USERS = {
    ADMIN[0]: ADMIN[1],
    "first-admin": "an administrator's words",
    "first-operator": "an operator's words",
    "first-viewer": "a viewer's words",
    "second-admin": "another administrator's words",
    "second-viewer": "another viewer's words, für später",
}
"""User name to password."""

PLANT = [
    ["SUPPLY", "Supply temperature", "供水温度", "STA", "$AdapterID-1.t_supply", "x / 10"],
    ["RETURN", "Return temperature", "回水温度", "STA", "$AdapterID-1.t_return", "x / 10", ""],
    ["MODE", "Mode", "模式", "STA", "Cycled", "plant-a.mode", "@Expr", ""],
    ["FLOW", "Flow", "流量", "STA", "Changed", "$AdapterID-2.pump.flow", "", ""],
    ["FAULT", "Pump fault", "水泵故障", "STA", "$AdapterID-2.pump.status", "bit(x, 3)"],
    ["BOOT", "Runs", "运行", "STA", "$AdapterID-2.pump.status", "x >= 0"],
    [
        "COOLING",
        "Cooling power",
        "制冷量",
        "FUNC",
        "Changed",
        "",
        "@Expr",
        "round((RETURN - SUPPLY) * FLOW * 1.163, 1)",
    ],
    ["LOAD", "Load, each minute", "负荷", "FUNC", "Cycled", "60", "@Expr", "COOLING / 500 if MODE == 'cool' else 0"],
    ["CONDUCT", "Conductivity", "电导率", "COL", "Changed", "water-analysis", "", ""],
    ["FLOW_AVG", "Flow, ten minutes", "平均流量", "STT", "Changed", "600", "", {"fn": "avg", "of": "FLOW"}],
    ["FLOW_N", "Reports of the flow", "流量次数", "STT", "Changed", "600", "", {"fn": "count", "of": "FLOW"}],
    ["FLOW_D", "Change of the flow", "流量变化", "STT", "Changed", "3600", "@Stat", {"fn": "delta", "of": "FLOW"}],
    ["HOT", "Supply too warm", "供水过热", "EVNT", "$AdapterID-1.t_supply", "x / 10", "x > 120 and MODE == 'cool'"],
    ["LOW", "Low flow", "流量低", "EVNT", "Changed", "$AdapterID-2.pump.flow", "@Compare", ["<", 50]],
    ["TRIP", "Pump tripped", "水泵跳闸", "EVNT", "Changed", "FAULT", "==", "1"],
    ["SLACK", "Little difference", "温差小", "EVNT", "Cycled", "60", "@Condition", "RETURN - SUPPLY < 2"],
]
LABELS = [
    ["MODE", "Defrosting", "除霜", "defrost", ""],
    ["FAULT", "Pump out of order", "水泵停用", "1", "0"],
]
OTHERS = [
    ["BOOT", "Runs", "运行", "STA", "$AdapterID-1.T", "1"],
    *([f"T{place}", f"Temperature {place}", "温度", "STA", f"$AdapterID-{place}.T", "x", ""] for place in range(1, 7)),
]
CONTROLS = [
    ["START", "Start", "启动", "OBJ", "$AdapterID-2.RUN", "1"],
    ["SETPOINT", "Set point", "设定", "OBJ", "$AdapterID-1.SP1", "20"],
    ["RAW", "Custom to the terminal", "自定义", "APR", "plant-b.Buzz", ""],
    ["Diag", "Self-check", "自检", "APR", "$AdapterID-2", ""],
]
TERMINALS: dict[str, dict[str, Any]] = {
    "plant-a": {"description": "On the chiller"},
    "plant-b": {"description": "On the pumps"},
    "leaf-1": {},
    "route-1": {"is_route": 1},
    "auto-1": {"mode": "auto"},
    "scram-1": {"dixie": 1},
    "sealed-1": {"encryption": 1},
    "sealed-rsa": {"encryption": 1},
    "watch-5": {"topic": "pub:r;sub:g/#"},
    "watch-3": {"topic": "pub:r;sub:g/#", "session_expiry": 2**31 - 1},
    "away-1": {},
    "fw-1": {},
    "fw-2": {},
}
"""Those of the first company, with what differs from the rest."""
DASHBOARD = {
    "Dashboard-1": {
        "name": "Overview",
        "row": 1,
        "col": 1,
        "data": [{"type": "vlu", "name": "SUPPLY", "xys": {"pos": [0, 0], "len": [1, 1]}}],
    }
}
SCRIPTS = (("statistics", "Supply"), ("calculate", "Span"), ("balance", "Heat"))
OPTIONS = [
    {
        "OptionID": 1,
        "OptionName": "Meter",
        "OptionValue": [
            {
                "OptionValueID": 1,
                "OptionValueName": "kWh",
                "Parameter": [{"ParameterID": 1, "ParameterName": "a", "ParameterValue": "b"}],
            }
        ],
    }
]
FIRMWARE = bytes(range(256)) * 8


class Records:
    """Creates everything; ``uids`` has the uids that the platform made up, by name."""

    def __init__(self, admin: Api) -> None:
        self._admin = admin
        self.uids: dict[str, str] = {}
        self.rsa_public = ""

    def create(self) -> None:
        """All records, in the order in which they refer to each other."""
        self._people()
        self._terminals()
        self._objects()
        self._second_company()
        self._beside_objects()
        self._scripts()

    def start_scripts(self) -> None:
        """Starts what computes results of all that has been reported."""
        for entity, name in SCRIPTS:
            self._admin.call(f"start_{entity}", uid=self.uids[name])

    def rule(self, name: str, **fields: Any) -> str:
        """Creates a rule."""
        return self._make("rule", name, **fields)

    def campaign(self, name: str, **fields: Any) -> str:
        """Creates a campaign over the configuration ``Standard``."""
        return self._make("campaign", name, config_id=self.uids["Standard"], **fields)

    def _make(self, entity: str, name: str, **fields: Any) -> str:
        uid = str(self._admin.call(f"create_{entity}", name=name, **{**AUTHORS, **fields})["uid"])
        self.uids[name] = uid
        return uid

    def _add(self, path: str, **body: Any) -> None:
        self._admin.component("POST", f"{path}/add", body)

    def _people(self) -> None:
        self._make("company", "Second Works", contact="A. Person", email="office@example.com")
        company = self._admin.call("get_company_item", uid=self.uids["Second Works"])["id"]
        for username, password in USERS.items():
            which, _, role = username.partition("-")
            if role:
                self._admin.call(
                    "create_user",
                    username=username,
                    password=password,
                    role=role,
                    email=f"{username}@example.com",
                    permission_company_id=1 if which == "first" else company,
                )

    def _terminals(self) -> None:
        firmware = self._admin.component("POST", "/object/api/v1/file/upload", FIRMWARE, name="mcu-2.2.bin")
        self.uids["mcu-2.2.bin"] = firmware["uid"]
        self._add(
            "/object/api/v1/file",
            name="Firmware",
            type="datasheet",
            file=[{k: firmware[k] for k in ("name", "url", "uid")}],
        )
        self._make(
            "terminal_config",
            "Standard",
            mcu_file="http://files.example.com/mcu-2.2.bin",
            mcu_version="2.2",
            terminal_script={"interval": 10},
        )
        self._make("terminal_config", "Own file", mcu_file=firmware["uid"], mcu_version="2.2")
        key = generate_private_key(65537, 2048)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        self.rsa_public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        for uid, more in TERMINALS.items():
            self._terminal(self._admin, uid, self.uids["Standard"], **more)
        self._admin.call(
            "update_terminal", **{**self._admin.call("get_terminal_item", uid="sealed-rsa"), "rsa_privatekey": private}
        )

    def _terminal(self, api: Api, uid: str, config: str, **more: Any) -> None:
        fields = {"name": uid, "type": "Adapter-II", "mode": "pwd", "username": username_of(uid), "pin": pin_of(uid)}
        api.call(
            "create_terminal", uid=uid, config_id=config, access="all", **{**fields, "topic": "all", **AUTHORS, **more}
        )

    def _objects(self) -> None:
        plate = [{"title": "Plate", "data": [["Maker", "Example Works"], ["Year", "2024"]]}]
        self._make("mapping", "Chiller plants", script=PLANT, addition=plate)
        self._make("mapping", "Others", script=OTHERS)
        self._make("control", "Chiller controls", script=CONTROLS)
        self._make("customer", "Aqua Utilities", email="desk@example.com", province="North", city="Harbour")
        self._admin.call(
            "create_object",
            name="Chiller plant",
            province="North",
            city="Harbour",
            mapping_id=self.uids["Chiller plants"],
            control_id=self.uids["Chiller controls"],
            customer_id=self.uids["Aqua Utilities"],
            terminal_list=["plant-a", "plant-b"],
            addition=plate,
        )
        others = ["leaf-1", "route-1", "auto-1", "scram-1", "sealed-1", "sealed-rsa"]
        self._admin.call("create_object", name="Others", mapping_id=self.uids["Others"], terminal_list=others)

    def _second_company(self) -> None:
        api = Api(self._admin.port, "second-admin", USERS["second-admin"])
        config = api.call("create_terminal_config", name="Second", **AUTHORS)["uid"]
        self._terminal(api, "north-1", config)
        rows = [
            ["BOOT", "Runs", "运行", "STA", "$AdapterID-1.level", "1"],
            ["LEVEL", "Level", "液位", "STA", "$AdapterID-1.level", "x", ""],
        ]
        mapping = api.call("create_mapping", name="Tanks", script=rows, **AUTHORS)["uid"]
        api.call("create_object", name="Tank", mapping_id=mapping, terminal_list=["north-1"])
        api.close()

    def _beside_objects(self) -> None:
        self._make("dashboard", "Cooling", category="pro", script=DASHBOARD)
        at = "/object/api/v1"
        self._admin.component(
            "POST", f"{at}/object/addDashboard", {"category": "pro", "dashboard_id": 1, "object_id": 1}
        )
        self._add(f"{at}/group", name="North side")
        for object_id in (1, 2):
            self._add(f"{at}/groupmap", group_id=1, object_id=object_id)
        for category in ("定期保养", "报警处理"):
            self._add("/service/api/v1/service", name="Oil", object_id=1, category=category, source="alert", staff_id=7)
        self._add("/offline/api/v1/collect", name="water-analysis", is_active=True, option=OPTIONS)
        for value in ("398", "412"):
            self._add("/offline/api/v1/collectos", name="Sample", project_id=1, object_id=1, value=value)
        self._make("project", "Night shift", description="Commands after dark")

    def _scripts(self) -> None:
        functions = ("avg", "sum", "min", "max", "count", "delta", "first", "last")
        rows = [[f"S_{name.upper()}", name, "SUPPLY"] for name in functions]
        on = {"object_list": ["1"]}
        self._make("retainer", "States", script=LABELS, **on)
        self._make("statistics", "Supply", script=[*rows, ["COOL_S", "duration(MODE==cool)", "MODE"]], **on)
        self._make("calculate", "Span", script=[["SPAN", "S_MAX - S_MIN"], ["F", "S_AVG * 9 / 5 + 32"]], **on)
        self._make("balance", "Heat", target_code="RETURN", input_codes=["SUPPLY"], window=86_400, **on)
        self._admin.call("start_retainer", uid=self.uids["States"])
