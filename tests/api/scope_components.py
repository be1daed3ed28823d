"""What the component paths are sent in the tests of scope, and the records that only they make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from api_rig import Rig
from scope_world import MARK, Special, World

from terrazzo.domain.actor import SYSTEM

_OPTION = [{"OptionID": 1, "OptionName": "@mark", "OptionValue": []}]
_SCRIPTS: dict[str, Any] = {
    "mapping": [["T", "@mark", "T", "STA", "$AdapterID-1.T", "x", ""]],
    "control": [["SP1", "@mark", "SP1", "OBJ", "$AdapterID-1.SP1", "1"]],
    "dashboard": {"title": "@mark"},
}
_FIELDS: dict[str, dict[str, Any]] = {
    "object": {},
    "terminal": {"terminal_id": "new-@new"},
    "config": {},
    "control": {"script": _SCRIPTS["control"]},
    "mapping": {"script": _SCRIPTS["mapping"]},
    "dashboard": {"script": _SCRIPTS["dashboard"]},
    "group": {},
    "groupmap": {"group_id": "@lone_group"},
    "file": {"type": "other", "file": [{"name": "@mark", "url": "", "uid": ""}]},
    "service": {},
    "collect": {"option": _OPTION},
    "collectos": {"project_id": "@collect", "name": "@mark"},
}
"""By the segment of the path: what to send, beside the fields that everybody uses."""

_NAMES = {"config": "terminal_config"}  # where actions call a record otherwise
_BASES = {"service": "/service", "collect": "/offline", "collectos": "/offline"}


def _special(segment: str) -> dict[str, Special]:
    fields, name = _FIELDS[segment], _NAMES.get(segment, segment)
    at = f"{_BASES.get(segment, '/object')}/api/v1/{segment}"
    fixed = {"terminal_id": None} if segment == "terminal" else {}
    return {
        f"{at}/add": Special(fields=fields),
        f"{at}/edit": Special(fields={**fields, **fixed, "id": f"@{name}", "group_id": None}),
        f"{at}/delete": Special(fields={"id": f"@doomed_{name}"}),
        f"{at}/getItem": Special(fields={"id": f"@{name}"}),
    }


COMPONENTS: dict[str, Special] = {
    **{path: special for segment in _FIELDS for path, special in _special(segment).items()},
    "/object/api/v1/object/addDashboard": Special(fields={"dashboard_id": "@lone_dashboard", "category": "cat"}),
    "/object/api/v1/object/deleteDashboard": Special(fields={"dashboard_id": "@dashboard"}),
    "/object/api/v1/object/getDashboardByCategory": Special(fields={"category": "cat"}),
    "/offline/api/v1/collectos/getLastItem": Special(fields={"project_id": "@collect"}),
    "/object/api/v1/file/discard": Special(fields={"uid": "@upload"}),
}

FILE_ROUTES = dict.fromkeys(
    ("/object/api/v1/file/upload", "/object/api/v1/file/download/{uid}"), "components/test_components_files.py"
)


async def fill_components(rig: Rig, world: World) -> None:
    """A record of each kind that no action makes, and one to delete of each kind that a path deletes."""
    main, entities = world.main, rig.services.entities

    async def make(record: str, kept_in: str, /, **values: Any) -> None:
        row = await getattr(entities, kept_in).create(SYSTEM, values)
        main[record] = row["uid"]

    marked = {"name": MARK, "description": MARK}
    item, board = main["object"], main["dashboard"]
    await make("collect", "collects", **marked)
    await make("collectos", "collected", **marked, project_id=main["collect"], object_id=item, value=MARK)
    await make("doomed_collectos", "collected", project_id=main["collect"], object_id=item)
    await make("doomed_collect", "collects", **marked)
    for name in ("service", "doomed_service"):
        await make(name, "services", **marked, object_id=item)
    for name in ("group", "lone_group", "doomed_group"):
        await make(name, "groups", **marked)
    await make("groupmap", "group_maps", group_id=main["group"], object_id=item, reference=MARK)
    await make("doomed_object", "objects", **marked)
    await make("other_object", "objects", **marked)
    await make("doomed_groupmap", "group_maps", group_id=main["group"], object_id=main["other_object"])
    for name in ("lone_dashboard", "doomed_dashboard"):
        await make(name, "dashboards", **marked, script={"title": MARK})
    await make("doomed_terminal_config", "configurations", **marked)
    await make("doomed_mapping", "mappings", **marked, script=[])
    await make("doomed_control", "controls", **marked, script=[])
    terminal = {"type": "Other", "mode": "pwd", "username": "u", "pin": "p", "config_id": main["terminal_config"]}
    await make("doomed_terminal", "terminals", uid="doomed-terminal", **marked, **terminal)
    for name in ("file", "doomed_file"):
        await make(name, "files", **marked)
    await make("link", "object_dashboards", object_id=item, dashboard_id=board, category="cat")
    main["upload"] = (await rig.services.files.add(SYSTEM, f"{MARK}.bin", _pieces()))["uid"]


async def _pieces() -> AsyncIterator[bytes]:
    yield MARK.encode()
