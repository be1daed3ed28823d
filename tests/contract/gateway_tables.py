"""The actions of the gateway's interface description, as data.

``Action.asks`` and ``Action.gives`` are the two columns of its tables, word for word; the rest says the same in a form
that tests can use. Types of fields and results:

- ``key``: a record's uid or id; ``keys``: a list of them or its JSON text; ``names``: the same of strings; ``text``,
  ``int``, ``time``; ``json``: an object or array or its text; ``value``: a string, number or boolean;
- of results also ``null``, ``object``, ``rows`` (array of arrays), ``any``, and ``a|b`` for either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Shape = Any
"""A type's name; a dict of fields; a list of one shape, for an array of it; ``paged(shape)``."""


@dataclass(frozen=True)
class Field:
    """One field of a request."""

    name: str
    type: str
    required: bool = False


@dataclass(frozen=True)
class Action:
    """One row of the tables of actions."""

    name: str
    asks: str
    gives: str
    fields: tuple[Field, ...]
    result: Shape


def fields(kind: str, names: str, *, required: bool = False) -> tuple[Field, ...]:
    return tuple(Field(name, kind, required) for name in names.split())


def required(kind: str, names: str) -> tuple[Field, ...]:
    return fields(kind, names, required=True)


def paged(shape: Shape) -> Shape:
    return {
        "data": [shape],
        "page_index": "int",
        "page_size": "int",
        "total_pages": "int",
        "total_records": "int",
    }


def texts(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), "text")


def ints(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), "int")


PAGE = fields("int", "page_index page_size")
CONDITIONS = fields("json", "where_and where_or where_in")
UID = required("key", "uid")
SIGNED = required("int", "created_by last_modified_by is_available")

USER = {
    **ints("id is_active is_super is_default"),
    **texts("permission_company_id username head_image description mobile email created_at updated_at token"),
}

_TERMINAL_TEXTS = "name type mode username pin access"
TERMINAL_FIELDS = (
    *required("text", _TERMINAL_TEXTS),
    *required("key", "config_id"),
    *SIGNED,
    *fields("text", "description maker topic server rsa_privatekey reference"),
    *fields("int", "session_expiry keep_alive encryption dixie"),
)
TERMINAL = {
    **texts(f"uid {_TERMINAL_TEXTS} config_id description maker topic server rsa_privatekey reference"),
    **ints("id session_expiry keep_alive encryption dixie created_by last_modified_by is_available"),
    **dict.fromkeys(("created", "last_modified"), "time"),
    "terminal_object_map": "null",
}

_CONFIGURATION_TEXTS = (
    "description hardware mcu_file mcu_version remosu_file remosu_version lua_file lua_version reference"
)
CONFIGURATION_FIELDS = (
    *required("text", "name"),
    *SIGNED,
    *fields("text", _CONFIGURATION_TEXTS),
    *fields("json", "terminal_script config_script"),
)
CONFIGURATION = {
    **texts(f"uid name {_CONFIGURATION_TEXTS}"),
    **ints("id created_by last_modified_by is_available"),
    **dict.fromkeys(("created", "last_modified"), "time"),
    **dict.fromkeys(("terminal_script", "config_script"), "object"),
}

MAPPING_FIELDS = (
    *required("text", "name"),
    *required("json", "script"),
    *SIGNED,
    *fields("text", "description reference"),
    *fields("json", "addition"),
)
MAPPING = {
    **texts("uid name description reference"),
    **ints("id created_by last_modified_by is_available"),
    **dict.fromkeys(("created", "last_modified"), "time"),
    "script": "rows",
    "addition": [{"title": "text", "data": "rows"}],
}

_CUSTOMER_TEXTS = "description email contact mobile phone province city address secret responsible responsible_phone"
CUSTOMER = {
    **texts(f"uid name reference {_CUSTOMER_TEXTS}"),
    **ints("id is_available"),
    **dict.fromkeys(("created", "last_modified"), "time"),
}

OBJECT_FIELDS = (
    *required("text", "name"),
    *required("key", "mapping_id"),
    *required("keys", "terminal_list"),
    *fields("text", "description image province city"),
    *fields("key", "control_id customer_id"),
    *fields("keys", "object_list"),
)

GRID = {"payload": "object", "time": "time", "topic": "text"}
MOSAIC = {"time": "time"}
STATISTICS = {
    **ints("id is_available"),
    **texts("script_uid object_id description data var_name"),
    **dict.fromkeys(("start_time", "end_time", "created"), "offset time"),
}
LABEL = {
    **texts("object_id terminal_id class_id template_id code label_en label_cn retained elapsed reference close_at"),
    **ints("id project_id is_available"),
    **dict.fromkeys(("opened_at", "created"), "time"),
}
"""Section 2 "Retainer-label record", with the gateway's object ids, and the script's uid as it is asked for."""

RETAINER = {
    **ints("id is_active last_modified_by is_available"),
    **texts("uid name description"),
    **dict.fromkeys(("created", "last_modified"), "offset time"),
    "objectlist": ["text"],
    "script": "rows",
}
BALANCE = {
    **texts("block_id class_id created id object_id project_id"),
    "mapping_id": "text|null",
    "value": texts("correlation parameters time"),
}

MOSAIC_FIELDS = (*required("key", "object_id"), *required("names", "keys"))
GRID_FIELDS = (*required("key", "terminal_id"), *fields("names", "topic"))
RANGE = (*required("time", "start_time end_time"), *PAGE)
RESULT_LIST = (*fields("key", "script_uid"), *PAGE, *CONDITIONS, *fields("json", "order_by"))

ACTIONS = (
    Action(
        "login",
        "username (string, required), password (string, required)",
        "User object, including `token`",
        required("text", "username password"),
        USER,
    ),
    Action(
        "ping",
        "message (string, optional); on WebSocket also `Authorization`",
        "`{pong: string}`",
        fields("text", "message"),
        texts("pong"),
    ),
    Action("create_terminal", "Terminal fields", "`{uid}`", (*required("text", "uid"), *TERMINAL_FIELDS), texts("uid")),
    Action(
        "update_terminal",
        "Terminal fields (`uid` identifies the record)",
        "`{uid}`",
        (*UID, *TERMINAL_FIELDS),
        texts("uid"),
    ),
    Action("delete_terminal", "uid (required)", "`{uid}`", UID, texts("uid")),
    Action("get_terminal_item", "uid (required)", "Terminal record", UID, TERMINAL),
    Action(
        "get_terminal_list",
        "uids ([]string, optional; restricts to those terminals), page_index, page_size",
        "Array of terminal records",
        (*fields("names", "uids"), *PAGE),
        [TERMINAL],
    ),
    Action("create_terminal_config", "Configuration fields without uid", "`{uid}`", CONFIGURATION_FIELDS, texts("uid")),
    Action(
        "update_terminal_config",
        "Configuration fields with uid",
        "`{uid}`",
        (*UID, *CONFIGURATION_FIELDS),
        texts("uid"),
    ),
    Action("delete_terminal_config", "uid", "`{uid}`", UID, texts("uid")),
    Action("get_terminal_config_item", "uid", "Configuration record", UID, CONFIGURATION),
    Action(
        "get_terminal_config_list", "page_index, page_size", "Array of configuration records", PAGE, [CONFIGURATION]
    ),
    Action("create_mapping", "Mapping fields without uid", "`{uid}`", MAPPING_FIELDS, texts("uid")),
    Action("update_mapping", "Mapping fields with uid", "`{uid}`", (*UID, *MAPPING_FIELDS), texts("uid")),
    Action("delete_mapping", "uid", "`{uid}`", UID, texts("uid")),
    Action("get_mapping_item", "uid", "Mapping record", UID, MAPPING),
    Action("get_mapping_list", "page_index, page_size", "Array of mapping records", PAGE, [MAPPING]),
    Action("create_object", "Object fields above", "Not shown", OBJECT_FIELDS, {"id": "int", "uid": "text"}),
    Action(
        "update_customer",
        "id (int, required), uid (required), name (required); optional description, email, contact, mobile, phone, "
        "province, city, address, secret, responsible, responsible_phone",
        "Customer record",
        (*required("int", "id"), *UID, *required("text", "name"), *fields("text", _CUSTOMER_TEXTS)),
        CUSTOMER,
    ),
    Action("delete_customer", "uid (required)", "Customer record", UID, CUSTOMER),
    Action("get_customer_item", "uid (required)", "Customer record", UID, CUSTOMER),
    Action(
        "get_customer_list",
        "page_index, page_size, where_and, where_or, where_in",
        "Paged customer records",
        (*PAGE, *CONDITIONS),
        paged(CUSTOMER),
    ),
    Action("get_last_mosaic", "none", "`{data: [mosaic record]}`, the latest one", MOSAIC_FIELDS, {"data": [MOSAIC]}),
    Action(
        "get_mosaic_item",
        "time (string, required)",
        "`{data: [record]}`, the first record after that time",
        (*MOSAIC_FIELDS, *required("time", "time")),
        {"data": [MOSAIC]},
    ),
    Action(
        "get_last_mosaic_list",
        "items (int, required)",
        "`{data: [records], items}`, newest first",
        (*MOSAIC_FIELDS, *required("int", "items")),
        {"data": [MOSAIC], "items": "int"},
    ),
    Action(
        "get_mosaic_list",
        "start_time, end_time (required), page_index, page_size",
        "Paged, newest first",
        (*MOSAIC_FIELDS, *RANGE),
        paged(MOSAIC),
    ),
    Action("get_last_grid", "none", "`{data: [grid record]}`", GRID_FIELDS, {"data": [GRID]}),
    Action(
        "get_grid_item",
        "time (required)",
        "`{data: [record]}`, the first record after that time",
        (*GRID_FIELDS, *required("time", "time")),
        {"data": [GRID]},
    ),
    Action(
        "get_last_grid_list",
        "items (int, required)",
        "`{data: [...], items}`",
        (*GRID_FIELDS, *required("int", "items")),
        {"data": [GRID], "items": "int"},
    ),
    Action(
        "get_grid_list",
        "start_time, end_time (required), page_index, page_size",
        "Paged, newest first",
        (*GRID_FIELDS, *RANGE),
        paged(GRID),
    ),
    Action(
        "get_last_statistics",
        "script_uid (required); the example also sends object_id",
        "`{data: [statistics record]}`",
        (*required("key", "script_uid"), *fields("key", "object_id")),
        {"data": [STATISTICS]},
    ),
    Action(
        "get_statistics_list",
        "script_uid (optional), page_index, page_size, where_and, where_or, where_in, order_by (JSON string "
        "`[field, asc or desc]`)",
        "Paged statistics records",
        RESULT_LIST,
        paged(STATISTICS),
    ),
    Action(
        "get_last_calculate",
        "script_uid (required); the example also sends object_id",
        "`{data: [calculation record]}`",
        (*required("key", "script_uid"), *fields("key", "object_id")),
        {"data": [STATISTICS]},
    ),
    Action(
        "get_calculate_list", "same as get_statistics_list", "Paged calculation records", RESULT_LIST, paged(STATISTICS)
    ),
    Action(
        "publish_object_command",
        "object_id, command, value (all strings, required); `command` is a code from the first column of the "
        "object's control script",
        "`{}`",
        (*required("key", "object_id"), *required("text", "command"), *required("value", "value")),
        {},
    ),
    Action(
        "publish_object_commnad_plus",
        "publishes: JSON array of `{object_id, command, value}`",
        "`{}`",
        required("json", "publishes"),
        {},
    ),
    Action(
        "publish_terminal_command",
        "terminal_id, command, value (strings, required)",
        "`{}`",
        (*required("key", "terminal_id"), *required("text", "command"), *required("value", "value")),
        {},
    ),
    Action(
        "create_retainer",
        "name, description, object_list (JSON array of object ids), script (JSON array of rows)",
        "`{uid}`",
        (
            *required("text", "name"),
            *fields("text", "description"),
            *required("keys", "object_list"),
            *required("json", "script"),
        ),
        texts("uid"),
    ),
    Action(
        "update_retainer",
        "uid, name, object_list, script (required); description (optional)",
        "none; only code and msg",
        (
            *UID,
            *required("text", "name"),
            *required("keys", "object_list"),
            *required("json", "script"),
            *fields("text", "description"),
        ),
        "any",
    ),
    Action("delete_retainer", "uid", "none", UID, "any"),
    Action("start_retainer", "uid", "none", UID, "any"),
    Action("stop_retainer", "uid", "none", UID, "any"),
    Action("get_retainer_list", "page_index, page_size", "Paged retainer records", PAGE, paged(RETAINER)),
    Action("get_retainer_item", "uid", "Retainer record", UID, RETAINER),
    Action(
        "close_retainer",
        "object_id, code (retainer code), template_id (retainer script uid); these three identify one retainer, which "
        "is closed",
        "Response: not shown",
        (*required("key", "object_id"), *required("text", "code"), *required("key", "template_id")),
        {**LABEL, "close_at": "time"},
    ),
    Action("get_open_retainer_list", "none; lists retainers in progress", "Response: not shown", (), paged(LABEL)),
    Action(
        "get_balance_result_list",
        "page_index, page_size, where_and, where_or, where_in (strings)",
        "Paged balance result records",
        (*PAGE, *CONDITIONS),
        paged(BALANCE),
    ),
)
"""Every row of the tables."""
