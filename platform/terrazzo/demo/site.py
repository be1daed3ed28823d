"""The plant of the demo: its terminals, and what is said of their machines, in English and Chinese."""

from __future__ import annotations

from typing import Any

import msgspec

COMPANY = "Demo Works"
CUSTOMER = "Blue Heron Beverages 蓝鹭饮料"
USERS = {"demo-admin": "admin", "demo-operator": "operator", "demo-viewer": "viewer"}
SPARE = "demo-spare"
MISSET = "demo-meter-boiler"  # has a wrong password on purpose


class DemoTerminal(msgspec.Struct, frozen=True, kw_only=True):
    """One terminal of the demo: fields of its record, and options (``device``) of its simulation.

    Attributes:
        silent_h: it keeps its connection and says nothing since so many hours; 0: it reports.
        is_misset: it has the wrong pin and is refused.
    """

    uid: str
    name: str
    type: str = "Other"
    record: dict[str, Any] = {}
    device: dict[str, Any] = {}
    silent_h: int = 0
    is_misset: bool = False


class DemoObject(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of the plant. ``kind``: which mapping and control table it has."""

    name: str
    description: str
    kind: str
    group: str
    terminals: tuple[str, ...]
    model: str


_OLD = {"protocol": "3.1.1"}
TERMINALS = (
    DemoTerminal(
        uid="demo-chiller-1", name="Chiller 1 gateway 一号冷水机网关", type="Adapter-III", device={"rated": 46}
    ),
    DemoTerminal(
        uid="demo-chiller-2", name="Chiller 2 gateway 二号冷水机网关", type="Adapter-III", device={"rated": 46, **_OLD}
    ),
    DemoTerminal(
        uid="demo-chiller-3",
        name="Chiller 3 gateway 三号冷水机网关",
        type="Adapter-III",
        record={"dixie": 1},
        device={"rated": 32},
    ),
    DemoTerminal(
        uid="demo-compressor-1",
        name="Compressor 1 gateway 一号空压机网关",
        type="Adapter-II",
        record={"mode": "auto"},
        device={"rated": 55},
    ),
    DemoTerminal(
        uid="demo-compressor-2",
        name="Compressor 2 gateway 二号空压机网关",
        type="Adapter-II",
        record={"mode": "auto"},
        device={"rated": 55, **_OLD},
    ),
    DemoTerminal(
        uid="demo-compressor-3",
        name="Compressor 3 gateway 三号空压机网关",
        type="Adapter-II",
        device={"rated": 37},
        silent_h=5,
    ),
    DemoTerminal(
        uid="demo-meter-main",
        name="Main meter 总电表",
        type="Adapter-X",
        device={"rated": 850, "format": "msgpack", "last": {"LIMIT": 500}},
    ),
    DemoTerminal(
        uid="demo-meter-cooling",
        name="Cooling feeder meter 制冷回路电表",
        type="Adapter-X",
        record={"dixie": 1},
        device={"rated": 320, "scram": "SCRAM-SHA-256", "last": {"LIMIT": 220}},
    ),
    DemoTerminal(
        uid="demo-meter-air",
        name="Compressed air feeder meter 空压回路电表",
        type="Adapter-X",
        record={"encryption": 1},
        device={"rated": 240, "last": {"LIMIT": 165}},
    ),
    DemoTerminal(uid="demo-line-1", name="Bottling line 1 controller 一号灌装线控制器"),
    DemoTerminal(uid=MISSET, name="Boiler house meter 锅炉房电表", type="Adapter-X", is_misset=True),
)
_ENERGY = "Energy centre 动力站"
_POWER = "Distribution 配电"
_HALL = "Bottling hall 灌装车间"
OBJECTS = (
    DemoObject(
        name="Chiller 1 一号冷水机",
        description="Process cooling, lead machine 工艺冷却主机",
        kind="chiller",
        group=_ENERGY,
        terminals=("demo-chiller-1",),
        model="CH-300",
    ),
    DemoObject(
        name="Chiller 2 二号冷水机",
        description="Process cooling 工艺冷却",
        kind="chiller",
        group=_ENERGY,
        terminals=("demo-chiller-2",),
        model="CH-300",
    ),
    DemoObject(
        name="Chiller 3 三号冷水机",
        description="Air conditioning of the hall 车间空调",
        kind="chiller",
        group=_ENERGY,
        terminals=("demo-chiller-3",),
        model="CH-200",
    ),
    DemoObject(
        name="Compressor 1 一号空压机",
        description="Base load 基载",
        kind="compressor",
        group=_ENERGY,
        terminals=("demo-compressor-1",),
        model="AC-75",
    ),
    DemoObject(
        name="Compressor 2 二号空压机",
        description="Base load 基载",
        kind="compressor",
        group=_ENERGY,
        terminals=("demo-compressor-2",),
        model="AC-75",
    ),
    DemoObject(
        name="Compressor 3 三号空压机",
        description="Peak load 调峰",
        kind="compressor",
        group=_ENERGY,
        terminals=("demo-compressor-3",),
        model="AC-45",
    ),
    DemoObject(
        name="Main supply 总进线",
        description="What the site draws 全厂用电",
        kind="meter",
        group=_POWER,
        terminals=("demo-meter-main",),
        model="PM-3",
    ),
    DemoObject(
        name="Cooling feeder 制冷回路",
        description="All chillers and pumps 全部冷水机与水泵",
        kind="meter",
        group=_POWER,
        terminals=("demo-meter-cooling",),
        model="PM-3",
    ),
    DemoObject(
        name="Compressed air feeder 空压回路",
        description="All compressors and dryers 全部空压机与干燥机",
        kind="meter",
        group=_POWER,
        terminals=("demo-meter-air",),
        model="PM-3",
    ),
    DemoObject(
        name="Boiler house feeder 锅炉房回路",
        description="The terminal has the wrong pin 终端密码有误",
        kind="meter",
        group=_POWER,
        terminals=(MISSET,),
        model="PM-3",
    ),
    DemoObject(
        name="Bottling line 1 一号灌装线",
        description="0.5 l PET, 12,000 bottles an hour 半升瓶，每小时一万二千瓶",
        kind="line",
        group=_HALL,
        terminals=("demo-line-1",),
        model="FL-12",
    ),
)
