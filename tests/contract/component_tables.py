"""The resources of the component interfaces' description that clients write, as data.

Each field's name, type and length are those of its tables. Types: ``text`` (with a length where it has one), ``int``,
``flag`` (0 or 1), ``bool``, ``array`` and ``object`` (of a record; JSON text on the way in), ``keys`` (text with commas
on the way out), ``time``; ``ref``: the number of another resource's record. What ``is_read_only`` is never sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    """One field of a record."""

    name: str
    type: str
    length: int | None = None
    is_read_only: bool = False
    of: str = ""  # which resource a ``ref`` names


@dataclass(frozen=True)
class Resource:
    """One resource: its address, its fields, and a record that can be added."""

    name: str
    base: str
    heading: str  # of its table in the description; empty: it has none, or a list in prose
    fields: tuple[Field, ...]
    example: dict[str, Any]
    verbs: tuple[str, ...] = ("add", "edit", "delete", "getItem", "getList")

    @property
    def at(self) -> str:
        return f"{self.base}/api/v1/{self.name}"


def texts(**lengths: int) -> tuple[Field, ...]:
    return tuple(Field(name, "text", length) for name, length in lengths.items())


def plain(kind: str, names: str) -> tuple[Field, ...]:
    return tuple(Field(name, kind) for name in names.split())


def read_only(names: str, kind: str = "time") -> tuple[Field, ...]:
    return tuple(Field(name, kind, is_read_only=True) for name in names.split())


ID = Field("id", "int", is_read_only=True)
AUTHORS = (
    *texts(reference=64),
    *plain("int", "created_by last_modified_by"),
    *plain("flag", "is_available"),
    *read_only("created last_modified"),
)
NAMED = (ID, *texts(name=64, description=255))
OBJECT_REF = Field("object_id", "ref", of="object")

RESOURCES = (
    Resource(
        "config",
        "/object",
        "",
        (
            *NAMED,
            *texts(hardware=64, mcu_file=128, remosu_file=128, lua_file=128),
            *texts(mcu_version=32, remosu_version=32, lua_version=32),
            *AUTHORS,
        ),
        {"name": "standard"},
    ),
    Resource(
        "control",
        "/object",
        "",
        (*NAMED, *plain("array", "script"), *plain("json", "template"), *AUTHORS),
        {"name": "pump", "script": '[["SP1", "Setpoint", "设定", "OBJ", "$AdapterID-1.SP1", "1"]]'},
    ),
    Resource(
        "mapping",
        "/object",
        "",
        (*NAMED, *plain("array", "script"), *plain("json", "template"), *AUTHORS),
        {"name": "pump", "script": '[["T", "Temperature", "温度", "STA", "$AdapterID-1.T", "x", ""]]'},
    ),
    Resource(
        "terminal",
        "/object",
        "### Terminal (object-management component)",
        (
            ID,
            *texts(terminal_id=64, name=64, description=255, maker=64),
            Field("type", "text", 16),
            *plain("flag", "is_route"),
            Field("mode", "choice", 16),
            *texts(username=32, pin=16),
            Field("access", "choice", 16),
            Field("topic", "choice", 64),
            *read_only("activated"),
            Field("config_id", "ref", of="config"),
            *texts(server=32),
            *plain("int", "session_expiry keep_alive"),
            *plain("flag", "encryption dixie"),
            Field("rsa_privatekey", "choice"),
            *AUTHORS,
        ),
        {
            "terminal_id": "{new}",
            "name": "north",
            "type": "Adapter-X",
            "mode": "pwd",
            "username": "u",
            "pin": "p",
            "access": "all",
        },
    ),
    Resource(
        "object",
        "/object",
        "### Object (object-management component)",
        (
            *NAMED,
            *texts(image=128, province=16, city=16),
            *plain("int", "file_id"),
            Field("mapping_id", "ref", of="mapping"),
            Field("control_id", "ref", of="control"),
            *plain("keys", "terminal_list"),
            *texts(model=32, serial_no=32, gis=128, secret=16, control=16),
            *plain("array", "addition"),
            *plain("object", "template script"),
            *AUTHORS,
            *read_only("is_online is_boot is_retainer", "flag"),
        ),
        {
            "name": "pump 1",
            "addition": '[{"title": "Plate", "data": [["Power", "4 kW"]]}]',
            "template": '{"a": 1}',
            "script": '{"b": []}',
        },
    ),
    Resource(
        "dashboard",
        "/object",
        "### Dashboard record",
        (
            *NAMED,
            *plain("object", "script template"),
            *texts(category=16),
            *AUTHORS,
        ),
        {"name": "pumps", "category": "pro", "script": '{"Dashboard-1": {"col": 24, "row": 12, "data": []}}'},
    ),
    Resource("group", "/object", "", (*NAMED, *AUTHORS), {"name": "north side"}),
    Resource(
        "groupmap",
        "/object",
        "",
        (ID, Field("group_id", "ref", of="group"), OBJECT_REF, *AUTHORS),
        {},
    ),
    Resource(
        "file",
        "/object",
        "",
        (*NAMED, Field("type", "choice", 16), *plain("array", "file"), *AUTHORS),
        {"name": "manuals", "type": "datasheet", "file": '[{"name": "a.pdf", "url": "/a.pdf", "uid": "1"}]'},
    ),
    Resource(
        "service",
        "/service",
        "### Service record",
        (
            *NAMED,
            OBJECT_REF,
            *texts(category=64, file=128),
            *plain("int", "staff_id"),
            *texts(staff_name=32),
            *read_only("service_at"),
            Field("source", "choice", 32),
            *texts(reference=64),
            *read_only("created"),
            *plain("flag", "is_available"),
        ),
        {"name": "oil", "category": "定期保养", "source": "alert", "staff_id": 7},
    ),
    Resource(
        "collect",
        "/offline",
        "### Offline project (collect)",
        (
            ID,
            *texts(name=64, description=255, block_id=64, class_id=32),
            *plain("bool", "is_active"),
            *plain("array", "option"),
            *plain("json", "script"),
            *read_only("created", "iso"),
            *plain("int", "created_by"),
            *read_only("last_modified", "iso"),
            *plain("int", "last_modified_by"),
            *plain("bool", "is_available"),
        ),
        {
            "name": "meter",
            "is_active": True,
            "option": '[{"OptionID": 1, "OptionName": "Meter", "OptionValue": [{"OptionValueID": 1, '
            '"OptionValueName": "kWh", "Parameter": ['
            '{"ParameterID": 1, "ParameterName": "a", "ParameterValue": "b"}]}]}]',
        },
    ),
    Resource(
        "collectos",
        "/offline",
        "### Offline data record (collectos)",
        (
            *NAMED,
            *texts(class_id=32),
            Field("project_id", "ref", of="collect"),
            OBJECT_REF,
            Field("value", "text"),
            *texts(file=32, collector=32),
            *read_only("collect_at"),
            *texts(reference=64),
            *read_only("created"),
            *plain("flag", "is_available"),
        ),
        {"name": "May", "value": "12.5"},
    ),
)
"""Those that others refer to come first."""

BY_NAME = {resource.name: resource for resource in RESOURCES}

PATHS = """
GET  /grid/api/v1/grid/getLastItem
GET  /grid/api/v1/grid/getItemByTime
GET  /grid/api/v1/grid/getLastListByItem
GET  /grid/api/v1/grid/getListByDuration
GET  /mosaic/api/v1/mosaic/getLastItem
GET  /mosaic/api/v1/mosaic/getItemByTime
GET  /mosaic/api/v1/mosaic/getLastListByItem
GET  /mosaic/api/v1/mosaic/getListByDuration
POST /mosaic/api/v1/mosaic/getListByKey
GET  /service/api/v1/event/getItem
GET  /service/api/v1/event/getList
GET  /service/api/v1/retainer/getItem
GET  /service/api/v1/retainer/getList
POST /service/api/v1/service/add
POST /service/api/v1/service/delete
GET  /service/api/v1/service/getItem
GET  /service/api/v1/service/getList
GET  /service/api/v1/statistics/eventQuantity
GET  /service/api/v1/statistics/retainerQuantity
GET  /service/api/v1/statistics/eventQuantityByDay
GET  /service/api/v1/statistics/retainerQuantityByDay
GET  /service/api/v1/statistics/serviceTypeQuantityByDay
GET  /offline/api/v1/collect/getItem
GET  /offline/api/v1/collect/getList
POST /offline/api/v1/collectos/add
POST /offline/api/v1/collectos/edit
POST /offline/api/v1/collectos/delete
GET  /offline/api/v1/collectos/getItem
GET  /offline/api/v1/collectos/getLastItem
GET  /offline/api/v1/collectos/getList
POST /object/api/v1/object/add
POST /object/api/v1/object/edit
POST /object/api/v1/object/delete
GET  /object/api/v1/object/getItem
GET  /object/api/v1/object/getList
POST /object/api/v1/object/addDashboard
POST /object/api/v1/object/deleteDashboard
GET  /object/api/v1/object/getDashboardByCategory
POST /object/api/v1/terminal/edit
POST /object/api/v1/terminal/delete
GET  /object/api/v1/terminal/getItem
GET  /object/api/v1/terminal/getList
POST /object/api/v1/config/add
POST /object/api/v1/config/edit
POST /object/api/v1/config/delete
GET  /object/api/v1/config/getItem
GET  /object/api/v1/config/getList
POST /object/api/v1/control/add
POST /object/api/v1/control/edit
POST /object/api/v1/control/delete
GET  /object/api/v1/control/getItem
GET  /object/api/v1/control/getList
POST /object/api/v1/mapping/add
POST /object/api/v1/mapping/edit
POST /object/api/v1/mapping/delete
GET  /object/api/v1/mapping/getItem
GET  /object/api/v1/mapping/getList
POST /object/api/v1/file/add
GET  /stats/api/v1/statos/getList
POST /stats/api/v1/statos/getList
GET  /stats/api/v1/statos/getItem
GET  /stats/api/v1/statos/getLastItem
POST /api/send/send-email
POST /api/send/send-sms
POST /api/send/send-app-push
POST /api/send/send-wechat
POST /pusher/api/v1/publish
"""
"""Every path of the description, at its default prefix."""

DOCUMENTED = tuple((line.split()[0], line.split()[1]) for line in PATHS.split("\n") if line)
