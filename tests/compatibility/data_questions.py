"""What the kept data are asked, and which part of an answer depends on the time at which it is asked."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from data_records import TERMINALS
from data_server import Api

GATEWAY = "/apiproxy/api"
Question = dict[str, Any]
"""``who`` (a user name), ``method``, ``path``, and ``body`` or ``query`` where it has one."""

RANGE = {"start_time": "2024-03-01 00:00:00", "end_time": "2024-03-04 00:00:00"}
KEYS = [
    "SUPPLY",
    "RETURN",
    "MODE",
    "FLOW",
    "FAULT",
    "BOOT",
    "COOLING",
    "LOAD",
    "CONDUCT",
    "FLOW_AVG",
    "FLOW_N",
    "FLOW_D",
]
_ALL: dict[str, Any] = {"page_size": 1000}
_NAMED = {
    "terminal_config": ("Standard", "Own file"),
    "company": ("Second Works",),
    "mapping": ("Chiller plants", "Others"),
    "control": ("Chiller controls",),
    "customer": ("Aqua Utilities",),
    "dashboard": ("Cooling",),
    "project": ("Night shift",),
    "retainer": ("States",),
    "statistics": ("Supply",),
    "calculate": ("Span",),
    "balance": ("Heat",),
    "rule": ("Too warm", "Not started"),
    "campaign": ("MCU 2.2", "Later"),
}
_LISTS = """
user company terminal terminal_config mapping control customer object project retainer statistics_script
calculate_script balance dashboard rule message event retainer_label open_retainer reject command campaign replay
balance_result
"""


def questions(uids: Mapping[str, str], asked_at: str) -> list[Question]:
    """All of them; ``uids`` are those that the platform made up, by name, ``asked_at`` when it was filled."""
    return [
        *_records(uids, asked_at),
        *_reports(),
        *_variables(),
        *_happened(uids),
        *_results(uids),
        *_components(),
        *_files(uids),
        *_of_others(),
    ]


def _ask(action: str, *, who: str = "admin", **fields: Any) -> Question:
    return {"who": who, "method": "POST", "path": GATEWAY, "body": {"action": action, **fields}}


def _get(path: str, **query: Any) -> Question:
    return {"who": "admin", "method": "GET", "path": path, "query": query}


def _records(uids: Mapping[str, str], asked_at: str) -> Iterator[Question]:
    yield from (_ask(f"get_{name}_list", **_ALL) for name in _LISTS.split())
    for entity, names in _NAMED.items():
        yield from (_ask(f"get_{entity}_item", uid=uids[name]) for name in names)
    yield from (_ask("get_terminal_item", uid=uid) for uid in TERMINALS)
    yield from (_ask("get_object_item", uid=str(number)) for number in (1, 2, 3))
    yield _ask("get_user_item", username="first-operator")
    yield _ask("get_terminal_list", where_and=[["uid", "like", "plant%"]], order_by=["uid", "desc"])
    yield _ask("get_object_list", where_in=["name", ["Tank", "Others"]], page_size=1)
    yield _ask("get_audit_list", end_time=asked_at, **_ALL)
    yield _ask("get_audit_list", entity="control", end_time=asked_at)
    yield _ask("get_campaign_terminal_list", uid=uids["MCU 2.2"])
    yield _ask("get_replay_item", id=1)


def _reports() -> Iterator[Question]:
    for uid in (*TERMINALS, "north-1"):
        yield _ask("get_last_grid", terminal_id=uid)
        yield _ask("get_terminal_status", terminal_id=uid)
    one = {"terminal_id": "plant-a"}
    yield _ask("get_last_grid", **one, topic=["i/#", "a"])
    yield _ask("get_grid_item", **one, time="2024-03-01 08:00:15")
    yield _ask("get_last_grid_list", **one, items=7)
    yield _ask("get_grid_list", **one, **RANGE, topic="g/+/r", page_index=2, page_size=20)
    yield _ask("get_grid_list", terminal_id="route-1", **RANGE)
    yield _ask("get_grid_chart", **one, **RANGE, keys=["t_supply", "t_return"], points=20)
    for uid in ("plant-a", "sealed-1"):
        yield _ask("get_reject_list", terminal_id=uid)
    for form in ("csv", "jsonl", "msgpack"):
        yield _get("/export/grid/plant-b", format=form, start=RANGE["start_time"], end=RANGE["end_time"])
    yield _get("/export/grid/plant-a", keys="t_supply", start=RANGE["start_time"], end=RANGE["end_time"])


def _variables() -> Iterator[Question]:
    one: dict[str, Any] = {"object_id": "1", "keys": KEYS}
    yield _ask("get_last_mosaic", **one)
    yield _ask("get_last_mosaic", object_id="2", keys=["BOOT", *(f"T{place}" for place in range(1, 7))])
    yield _ask("get_last_mosaic", object_id="3", keys=["LEVEL"])
    yield _ask("get_mosaic_item", **one, time="2024-03-01 08:00:45")
    yield _ask("get_last_mosaic_list", **one, items=9)
    yield _ask("get_mosaic_list", **one, **RANGE, page_size=200)
    yield _ask("get_mosaic_list", object_id="1", keys=["FLOW"], **RANGE)
    for fn in ("mean", "min", "max", "last"):
        yield _ask("get_mosaic_list_by_key", object_id="1", keys=["SUPPLY", "MODE"], **RANGE, resample="3h", fn=fn)
    yield _ask("get_mosaic_chart", object_id="1", keys=["SUPPLY", "RETURN"], **RANGE, points=16)
    for form in ("csv", "jsonl", "msgpack"):
        yield _get("/export/mosaic/1", format=form, start=RANGE["start_time"], end=RANGE["end_time"])


def _happened(uids: Mapping[str, str]) -> Iterator[Question]:
    yield _ask("get_event_list", object_id="1", order_by=["created", "asc"], where_and=[["code", "=", "HOT"]])
    yield from (_ask("get_event_item", id=number) for number in (1, 2, 3))
    yield from (_ask("get_retainer_label_item", id=number) for number in (1, 2))
    yield _ask("get_retainer_label_list", where_and=[["retained", "=", "1"]])
    for what in ("event", "retainer"):
        yield _ask(f"get_{what}_quantity")
        yield _ask(f"get_{what}_quantity_by_day", day=3)
    yield _ask("get_command_list", terminal_id="away-1")
    yield _ask("get_command_list", state="answered")
    yield _ask("get_message_list", where_and=[["state", "=", "sent"]], page_size=1)
    yield _ask("get_client_list")
    yield _ask("get_subscription_list")


def _results(uids: Mapping[str, str]) -> Iterator[Question]:
    for what, name in (("statistics", "Supply"), ("calculate", "Span")):
        for period in (1, 2, 3, 4):
            yield _ask(f"get_{what}_list", script_uid=uids[name], type=period, page_size=60)
            yield _ask(f"get_last_{what}", script_uid=uids[name], type=period)
    yield _ask("get_last_balance_result")
    yield _get("/stats/api/v1/statos/getList", type=2)
    yield _get("/stats/api/v1/statos/getLastItem", project_id=1, object_id=1)
    day = {"start": "2024-03-01 00:00:00", "end": "2024-03-02 00:00:00"}
    yield _get("/stats/api/v1/statos/getItem", **day, project_id=1, object_id=1)


def _components() -> Iterator[Question]:
    for name in ("object", "terminal", "config", "control", "mapping", "dashboard", "group", "groupmap", "file"):
        yield _get(f"/object/api/v1/{name}/getList", page_size=100)
        yield _get(f"/object/api/v1/{name}/getItem", id=1)
    for path in ("/service/api/v1/service", "/offline/api/v1/collect", "/offline/api/v1/collectos"):
        yield _get(f"{path}/getList")
        yield _get(f"{path}/getItem", id=1)
    yield _get("/offline/api/v1/collectos/getLastItem", project_id=1, object_id=1)
    yield _get("/object/api/v1/object/getDashboardByCategory", object_id=1, category="pro")
    for what in ("event", "retainer"):
        yield _get(f"/service/api/v1/{what}/getList", page_size=50)
        yield _get(f"/service/api/v1/{what}/getItem", id=1)
        yield _get(f"/service/api/v1/statistics/{what}Quantity")
    yield _get("/grid/api/v1/grid/getLastItem", terminal_id="plant-a")
    yield _get("/grid/api/v1/grid/getListByDuration", terminal_id="plant-b", **RANGE)
    yield _get("/mosaic/api/v1/mosaic/getLastItem", object_id=1, keys="SUPPLY")
    yield _get("/mosaic/api/v1/mosaic/getItemByTime", object_id=1, keys="FLOW", time="2024-03-01 08:00:00")


def _files(uids: Mapping[str, str]) -> Iterator[Question]:
    yield _get(f"/object/api/v1/file/download/{uids['mcu-2.2.bin']}")
    for entity in ("terminal_configs", "terminals", "mappings", "controls", "customers", "objects"):
        yield _get(f"/bulk/{entity}", format="jsonl", secrets=1)
    yield _get("/bulk/objects", format="csv")


def _of_others() -> Iterator[Question]:
    """What other users see, each of a company and with a role."""
    for who in ("first-operator", "first-viewer", "second-admin", "second-viewer"):
        yield _ask("get_terminal_list", who=who)
        yield _ask("get_object_list", who=who)
        yield _ask("get_user_list", who=who)
        yield _ask("get_last_mosaic", who=who, object_id="1", keys=["SUPPLY"])
    yield _ask("get_terminal_item", who="first-viewer", uid="sealed-rsa")


# Answers


def ask_all(asked: list[Question], api_of: Callable[[str], Api]) -> list[Any]:
    """The answers, without what depends on now."""
    apis = {who: api_of(who) for who in sorted({question["who"] for question in asked})}
    answers = [_answer(apis[question["who"]], question) for question in asked]
    for api in apis.values():
        api.close()
    return answers


def _answer(api: Api, question: Question) -> Any:
    status, content = api.send(question["method"], question["path"], question.get("body"), **question.get("query", {}))
    return {"status": status, "answer": without_now(_read(content))}


def _read(content: bytes) -> Any:
    """JSON; text as a list of lines; other bytes by their SHA-256."""
    try:
        return json.loads(content)
    except ValueError:
        pass
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


_DAY = re.compile(r"\d\d/\d\d")


def without_now(value: Any) -> Any:
    """An answer without what depends on the time of the question, each by a rule with a name."""
    if isinstance(value, dict):
        for rule in RULES:
            value = rule(value)
        return {name: without_now(each) for name, each in value.items()}
    return [without_now(each) for each in value] if isinstance(value, list) else value


def days_are_counted_back_from_today(found: dict[str, Any]) -> dict[str, Any]:
    """Counts by day: in their order, without their names."""
    if not (set(found) == {"date", "data"} and all(_DAY.fullmatch(str(day)) for day in found["date"])):
        return found
    return {"counts": [found["data"][day] for day in found["date"]]}


def an_open_label_grows_older(found: dict[str, Any]) -> dict[str, Any]:
    """``elapsed`` of a label that isn't closed."""
    is_open = "elapsed" in found and not found.get("close_at")
    return {name: each for name, each in found.items() if name != "elapsed"} if is_open else found


def presence_is_of_this_start(found: dict[str, Any]) -> dict[str, Any]:
    """Of a terminal's status what is not written down."""
    return {name: found[name] for name in ("terminal_id", "online")} if "last_telemetry" in found else found


def urls_of_webhooks_are_secrets(found: dict[str, Any]) -> dict[str, Any]:
    """In journaled requests and in the audit log, where versions before showed them."""
    if set(found) == {"method", "url"}:
        return {**found, "url": "******"}
    if found.get("entity") != "rule":
        return found
    return found | {
        name: {**found[name], "url": "******"} for name in ("before", "after") if "url" in (found[name] or {})
    }


def curves_are_thinned_by_other_hours(found: dict[str, Any]) -> dict[str, Any]:
    """Of the chart of an object what no choice of buckets changes: each curve's ends, its lowest and highest value."""
    if set(found) != {"SUPPLY", "RETURN"} or not all(isinstance(each, dict) for each in found.values()):
        return found
    if not all(set(each) == {"times", "values"} and 0 < len(each["times"]) <= 16 for each in found.values()):
        return found
    return {name: _unthinned(each["times"], each["values"]) for name, each in found.items()}


def _unthinned(times: list[Any], values: list[Any]) -> dict[str, Any]:
    ends = [(times[place], values[place]) for place in (0, -1)]
    return {"ends": ends, "lowest": min(values), "highest": max(values)}


NEVER_WRITTEN: dict[str, Any] = {
    **{key: {} for key in ("terminal_script", "config_script", "template", "script")},
    **{key: [] for key in ("addition", "option", "file")},
}
"""What structures read as that were never written; versions before said null."""


ADDED: dict[str, Any] = {"has_second_factor": 0, "needs_second_factor": 0, "by_sso": 0, "total_records": int}
ADDED |= {"deliver": 0, "configuration": None, "tags": [], "online": 0, "last_seen": "", "batch": None}
ADDED |= {"out_of_service": None, "version": str}
ADDED |= {"events": {}, "severity": str, "cleared_cause": str, "clear_at": None, "state": str, "payload": {}}
ADDED |= {key: [] for key in ("terminal_list", "group_list", "command_objects", "schedule")}
ADDED |= {"minutes": 5, "back_minutes": 5, "digest": "none", "digest_at": "08:00", "command": "", "command_value": ""}
ADDED |= {"command_expiry_s": 3_600, "commands_per_hour": 60, "loop_s": 60, "rule_id": None}
ADDED |= {"shelved_by": None, "shelved_until": None, "wave_progress": list}
ADDED |= {f"limit_{kind}": 0 for kind in ("records", "record_bytes", "files", "file_bytes", "events", "event_bytes")}
ADDED |= {"limit_publish_per_second": 0, "reason": dict}
ADDED |= {f"limit_rule{kind}": 0 for kind in ("s", "_conditions", "_commands_per_hour")}
ADDED |= {f"limit_{kind}": 0 for kind in ("api_keys", "authorities", "subscriptions", "answer_bytes", "series_mib")}
ADDED |= {f"limit_{kind}_{unit}": 0 for kind in ("queued", "retained") for unit in ("messages", "bytes")}
ADDED |= {f"retention_{kind}": 0 for kind in ("events", "labels", "commands", "messages", "audit", "series")}
"""Fields that records have since, with what they say of a record of before (or the type)."""


def as_said_now(kept: Any, found: Any) -> Any:
    """An answer of a version before, with what has changed on purpose since (CHANGELOG.md) where ``found`` says so."""
    if isinstance(kept, dict) and isinstance(found, dict):
        new = {name: found[name] for name in ADDED if name in found and name not in kept and _is_added(name, found)}
        return {name: _field_now(name, value, found.get(name)) for name, value in kept.items()} | new
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        if kept and isinstance(kept[0], str) and kept[0].startswith("uid,") and _columns(kept) == _columns(found):
            return found if _csv_now(kept, found) else kept
        return [as_said_now(*pair) for pair in zip(kept, found, strict=True)]
    if isinstance(kept, str) and isinstance(found, str) and kept.startswith('{"uid":') and found.startswith('{"uid":'):
        row = json.loads(found)  # a line of JSON lines
        return found if as_said_now(json.loads(kept), row) == row else kept
    return kept


def _field_now(name: str, kept: Any, found: Any) -> Any:
    if kept is None and name in NEVER_WRITTEN and found == NEVER_WRITTEN[name]:
        return found
    return as_said_now(kept, found)


def _is_added(name: str, found: dict[str, Any]) -> bool:
    said = ADDED[name]
    return bool(isinstance(found[name], said) if isinstance(said, type) else found[name] == said)


def _columns(table: list[str]) -> list[str]:
    """The columns of a table that versions before had too."""
    return [name for name in table[0].split(",") if name not in ADDED]


def _csv_now(kept: list[str], found: list[str]) -> bool:
    """Whether two tables differ in structures alone that were never written."""
    for before, after in zip(csv.DictReader(kept), csv.DictReader(found), strict=True):
        for name, cell in before.items():
            never = json.dumps(NEVER_WRITTEN[name]) if name in NEVER_WRITTEN else ""
            if cell != after[name] and (cell or after[name] != never):
                return False
    return True


RULES: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (
    days_are_counted_back_from_today,
    an_open_label_grows_older,
    presence_is_of_this_start,
    urls_of_webhooks_are_secrets,
    curves_are_thinned_by_other_hours,
)
