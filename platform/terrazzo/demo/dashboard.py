"""The demo's dashboard, in the record format of the contract: pages by name, with widgets on a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DASHBOARD = "Energy centre 动力站总览"
CATEGORY = "pro"
_COLUMNS, _ROWS = 24, 14
_SCREEN = (1920, 1080)


def dashboard_script(objects: Mapping[str, int], websocket: str) -> dict[str, Any]:
    """The pages. ``objects``: ids by name; ``websocket``: the address that live values come from."""
    pages = [_overview(objects), _line(objects)]
    return {
        f"Dashboard-{number}": {
            "name": name,
            "tag": tag,
            "col": _COLUMNS,
            "row": _ROWS,
            "screenWidth": _SCREEN[0],
            "screenHeight": _SCREEN[1],
            "dataType": "mosaic",
            "data": widgets,
            "webSocket": {"url": websocket, "projectId": "1", "objectId": str(object_id)},
        }
        for number, (name, tag, object_id, widgets) in enumerate(pages, 1)
    }


def _overview(objects: Mapping[str, int]) -> tuple[str, str, int, list[dict[str, Any]]]:
    main, cooling, air = (_named(objects, name) for name in ("Main supply", "Cooling feeder", "Compressed air feeder"))
    chillers = [_named(objects, f"Chiller {number}") for number in (1, 2, 3)]
    compressors = [_named(objects, f"Compressor {number}") for number in (1, 2, 3)]
    widgets = [
        _widget("gag", "Site power 全厂功率", (0, 0, 6, 4), [(main, "POWER")], least=0, most=500),
        _widget("vlu", "Energy 总电量", (6, 0, 4, 2), [(main, "ENERGY")]),
        _widget("vlu", "Power factor 功率因数", (6, 2, 4, 2), [(main, "PF")]),
        _widget(
            "lin",
            "Power of the feeders 回路功率",
            (10, 0, 14, 4),
            [(each, "POWER") for each in (main, cooling, air)],
        ),
        _widget("lin", "Supply temperatures 供水温度", (0, 4, 12, 5), [(each, "TEMP_SUPPLY") for each in chillers]),
        _widget("bar", "Efficiency of the chillers 冷水机能效", (12, 4, 12, 5), [(each, "COP") for each in chillers]),
        _widget("lin", "Air pressure 供气压力", (0, 9, 12, 5), [(each, "PRESSURE") for each in compressors]),
        _widget(
            "pie", "Power of the compressors 空压机功率", (12, 9, 12, 5), [(each, "POWER") for each in compressors]
        ),
    ]
    return "Energy centre 动力站", "energy", main, widgets


def _line(objects: Mapping[str, int]) -> tuple[str, str, int, list[dict[str, Any]]]:
    line = _named(objects, "Bottling line 1")
    widgets = [
        _widget("crd", "State 状态", (0, 0, 6, 4), [(line, "STATE")]),
        _widget("gag", "Output 产出", (6, 0, 6, 4), [(line, "RATE")], least=0, most=15_000),
        _widget("vlu", "Bottles filled 灌装数", (12, 0, 6, 4), [(line, "COUNT")]),
        _widget("vlu", "Energy of a bottle 单瓶电耗", (18, 0, 6, 4), [(line, "SPECIFIC")]),
        _widget("lin", "Output 产出", (0, 4, 24, 5), [(line, "RATE")]),
        _widget("lin", "Sealer temperature 封口温度", (0, 9, 24, 5), [(line, "TEMP_SEALER")]),
    ]
    return "Bottling hall 灌装车间", "line", line, widgets


def _named(objects: Mapping[str, int], name: str) -> int:
    """The id of the object whose name begins so, before its Chinese name."""
    return next(number for each, number in objects.items() if each.rpartition(" ")[0] == name)


def _widget(
    kind: str, name: str, place: tuple[int, int, int, int], values: list[tuple[int, str]], **more: Any
) -> dict[str, Any]:
    left, top, width, height = place
    shown = [{"objectId": str(object_id), "code": code} for object_id, code in values]
    return {
        "type": kind,
        "name": name,
        "theme": "light",
        "xys": {"pos": [left, top], "len": [width, height]},
        "attribute": {"values": shown, **more},
    }
