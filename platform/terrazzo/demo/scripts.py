"""What reports of the demo's machines mean: mappings, control tables, labels, statistics; rows as users write them."""

from __future__ import annotations

from typing import Any

Rows = list[list[str]]


def _point(code: str, english: str, chinese: str, expression: str = "") -> list[str]:
    """A variable that has the code of its point."""
    return [code.replace(".", "_"), english, chinese, "STA", f"$AdapterID-1.{code}", expression]


def _raised(alarm: str, english: str, chinese: str) -> list[str]:
    return [f"{alarm.removeprefix('ALARM_')}", english, chinese, "EVNT", f"$AdapterID-1.{alarm}", "x == 1"]


_BOOT = _point("BOOT", "Switched on", "开机")
_STATE = _point("STATE", "State", "状态")
_POWER = _point("POWER", "Power", "功率")
_ENERGY = _point("ENERGY", "Energy", "电量")
_HOURS = _point("HOURS", "Running hours", "运行小时")
_AMBIENT = _point("TEMP_AMBIENT", "Ambient temperature", "环境温度")

MAPPINGS: dict[str, tuple[str, Rows]] = {
    "chiller": (
        "Chiller 冷水机",
        [
            _BOOT,
            _STATE,
            _point("SETPOINT", "Supply setpoint", "供水设定"),
            _point("TEMP_SUPPLY", "Supply temperature", "供水温度"),
            _point("TEMP_RETURN", "Return temperature", "回水温度"),
            _AMBIENT,
            _point("FLOW", "Water flow", "水流量"),
            _point("COOLING", "Cooling power", "制冷量"),
            _POWER,
            _ENERGY,
            _point("COOLING_ENERGY", "Cooling energy", "累计制冷量"),
            _HOURS,
            [
                "COP",
                "Coefficient of performance",
                "能效比",
                "FUNC",
                "",
                "round(COOLING / POWER, 2) if POWER > 1 else 0",
            ],
            ["SPREAD", "Return less supply", "供回水温差", "FUNC", "", "round(TEMP_RETURN - TEMP_SUPPLY, 2)"],
            _point("ALARM_SUPPLY_HOT", "Alarm: supply too warm", "报警：供水过热"),
            _point("ALARM_FLOW_LOW", "Alarm: low flow", "报警：流量低"),
            _raised("ALARM_SUPPLY_HOT", "Supply too warm", "供水过热"),
            _raised("ALARM_FLOW_LOW", "Low flow", "流量低"),
        ],
    ),
    "compressor": (
        "Air compressor 空压机",
        [
            _BOOT,
            _STATE,
            _point("SETPOINT", "Pressure setpoint", "压力设定"),
            _point("PRESSURE", "Pressure", "压力"),
            _point("LOAD", "Load", "负荷"),
            _POWER,
            _ENERGY,
            _HOURS,
            _AMBIENT,
            _point("TEMP_OIL", "Oil temperature", "油温"),
            _point("TEMP_MOTOR", "Motor temperature", "电机温度"),
            _point("ALARM_OIL_HOT", "Alarm: oil too hot", "报警：油温高"),
            _point("ALARM_PRESSURE_LOW", "Alarm: low pressure", "报警：压力低"),
            _raised("ALARM_OIL_HOT", "Oil too hot", "油温高"),
            _raised("ALARM_PRESSURE_LOW", "Low pressure", "压力低"),
        ],
    ),
    "meter": (
        "Three-phase meter 三相电表",
        [
            _point("BREAKER", "Breaker closed", "断路器合闸"),
            _POWER,
            _ENERGY,
            _point("PF", "Power factor", "功率因数"),
            _point("FREQ", "Frequency", "频率"),
            *(_point(f"U.L{n}", f"Voltage L{n}", f"L{n} 电压") for n in (1, 2, 3)),
            *(_point(f"I.L{n}", f"Current L{n}", f"L{n} 电流") for n in (1, 2, 3)),
            _point("TEMP_CABINET", "Cabinet temperature", "柜内温度"),
            _point("ALARM_OVERLOAD", "Alarm: overload", "报警：过载"),
            _point("ALARM_VOLTAGE_LOW", "Alarm: low voltage", "报警：电压低"),
            _point("ALARM_CABINET_HOT", "Alarm: cabinet too hot", "报警：柜温高"),
            _raised("ALARM_OVERLOAD", "Overload", "过载"),
            _raised("ALARM_VOLTAGE_LOW", "Low voltage", "电压低"),
            _raised("ALARM_CABINET_HOT", "Cabinet too hot", "柜温高"),
        ],
    ),
    "line": (
        "Bottling line 灌装线",
        [
            _BOOT,
            _STATE,
            _point("SETPOINT", "Speed setpoint", "速度设定"),
            _point("RATE", "Output", "产出"),
            _point("COUNT", "Bottles filled", "灌装数"),
            _point("REJECTS", "Bottles rejected", "剔除数"),
            _point("TEMP_SEALER", "Sealer temperature", "封口温度"),
            _POWER,
            _ENERGY,
            _HOURS,
            [
                "SPECIFIC",
                "Energy of a bottle",
                "单瓶电耗",
                "FUNC",
                "",
                "round(1000 * POWER / RATE, 3) if RATE > 100 else 0",
            ],
            _point("ALARM_JAM", "Alarm: jam", "报警：卡瓶"),
            _point("ALARM_SEALER_COLD", "Alarm: sealer too cold", "报警：封口温度低"),
            _raised("ALARM_JAM", "Jam", "卡瓶"),
            _raised("ALARM_SEALER_COLD", "Sealer too cold", "封口温度低"),
        ],
    ),
}
"""By kind of machine: the mapping's name and rows."""

SEVERITIES = {
    "SUPPLY_HOT": "major",
    "FLOW_LOW": "warning",
    "OIL_HOT": "major",
    "PRESSURE_LOW": "minor",
    "OVERLOAD": "critical",
    "VOLTAGE_LOW": "minor",
    "CABINET_HOT": "warning",
    "JAM": "major",
    "SEALER_COLD": "minor",
}


NEEDS_SOMEBODY = ("OIL_HOT", "JAM")
"""Events that stay until a person clears them."""


def events_of(rows: Rows) -> dict[str, Any]:
    """What is said of a mapping's events: how severe they are, and which clear themselves."""
    return {
        row[0]: {
            "name": f"{row[1]} {row[2]}",
            "severity": SEVERITIES[row[0]],
            "clears_itself": row[0] not in NEEDS_SOMEBODY,
        }
        for row in rows
        if row[3] == "EVNT"
    }


_SHOWN: dict[str, tuple[str, int]] = {
    "TEMP_SUPPLY": ("°C", 1),
    "TEMP_RETURN": ("°C", 1),
    "TEMP_AMBIENT": ("°C", 1),
    "TEMP_OIL": ("°C", 1),
    "TEMP_MOTOR": ("°C", 1),
    "TEMP_CABINET": ("°C", 1),
    "TEMP_SEALER": ("°C", 1),
    "FLOW": ("m³/h", 1),
    "COOLING": ("kW", 1),
    "POWER": ("kW", 1),
    "ENERGY": ("kWh", 1),
    "COOLING_ENERGY": ("kWh", 1),
    "HOURS": ("h", 0),
    "LOAD": ("%", 0),
    "PRESSURE": ("bar", 2),
    "FREQ": ("Hz", 2),
    "PF": ("", 3),
    "COP": ("", 2),
    "SPREAD": ("K", 1),
    "RATE": ("bottles/h", 0),
    "SPECIFIC": ("Wh", 2),
    "COUNT": ("", 0),
    "REJECTS": ("", 0),
    "U_L1": ("V", 1),
    "I_L1": ("A", 1),
    "U_L2": ("V", 1),
    "I_L2": ("A", 1),
    "U_L3": ("V", 1),
    "I_L3": ("A", 1),
}
"""Units and decimals, by code."""

_YES_NO = (("0", "no", "否"), ("1", "yes", "是"))
_STATES = {
    "BOOT": (("0", "off", "关"), ("1", "on", "开")),
    "BREAKER": (("0", "open", "分闸"), ("1", "closed", "合闸")),
    "STATE": (
        ("cooling", "cooling", "制冷"),
        ("stop", "stopped", "停机"),
        ("idle", "idle", "空载"),
        ("load", "loaded", "加载"),
        ("off", "off", "关"),
        ("run", "running", "运行"),
        ("jam", "jammed", "卡瓶"),
        ("changeover", "changing over", "换产"),
    ),
}


_SETPOINTS = {"chiller": ("°C", 1), "compressor": ("bar", 1), "line": ("bottles/h", 0)}


def variables_of(kind: str, rows: Rows) -> dict[str, Any]:
    """What is said of the variables of a kind's mapping: units, decimals and names of states."""
    said = {row[0]: _variable(row[0]) for row in rows if row[3] != "EVNT"}
    if "SETPOINT" in said:
        unit, decimals = _SETPOINTS[kind]
        said["SETPOINT"] = {"unit": unit, "decimals": decimals}
    return {code: variable for code, variable in said.items() if variable}


def _variable(code: str) -> dict[str, Any]:
    states = _YES_NO if code.startswith("ALARM_") else _STATES.get(code, ())
    if states:
        return {"states": {value: {"label_en": english, "label_cn": chinese} for value, english, chinese in states}}
    unit, decimals = _SHOWN.get(code, ("", -1))
    return {"unit": unit, "decimals": decimals} if decimals >= 0 else {}


_ASK = ["Diag", "Ask how it is", "自检", "APR", "$AdapterID-1", ""]
_REBOOT = ["Reboot", "Restart the terminal", "重启终端", "APR", "$AdapterID-1", ""]
_SWITCH = [
    ["On", "Switch on", "开机", "OBJ", "$AdapterID-1.BOOT", "1"],
    ["Off", "Switch off", "停机", "OBJ", "$AdapterID-1.BOOT", "0"],
]
CONTROLS: dict[str, tuple[str, Rows]] = {
    "chiller": (
        "Chiller 冷水机",
        [
            ["Setpoint", "Supply setpoint, °C", "供水设定 °C", "OBJ", "$AdapterID-1.SETPOINT", "7"],
            *_SWITCH,
            _ASK,
            _REBOOT,
        ],
    ),
    "compressor": (
        "Air compressor 空压机",
        [["Setpoint", "Pressure, bar", "压力设定 bar", "OBJ", "$AdapterID-1.SETPOINT", "7.5"], *_SWITCH, _ASK, _REBOOT],
    ),
    "meter": (
        "Three-phase meter 三相电表",
        [["Limit", "Limit of the load, kW", "负荷上限 kW", "OBJ", "$AdapterID-1.LIMIT", "90"], _ASK, _REBOOT],
    ),
    "line": (
        "Bottling line 灌装线",
        [
            ["Speed", "Speed, bottles/h", "速度 瓶/h", "OBJ", "$AdapterID-1.SETPOINT", "12000"],
            *_SWITCH,
            _ASK,
            _REBOOT,
        ],
    ),
}
"""By kind of machine: the control table's name and rows."""

RETAINERS: dict[str, tuple[str, Rows]] = {
    "chiller": (
        "Chillers: labels 冷水机标签",
        [
            ["BOOT", "Switched off", "停机", "0", "1"],
            ["ALARM_SUPPLY_HOT", "Supply too warm", "供水过热", "1", "0"],
            ["ALARM_FLOW_LOW", "Low flow", "流量低", "1", "0"],
        ],
    ),
    "compressor": (
        "Compressors: labels 空压机标签",
        [
            ["ALARM_OIL_HOT", "Oil too hot", "油温高", "1", "0"],
            ["ALARM_PRESSURE_LOW", "Low pressure", "压力低", "1", "0"],
        ],
    ),
    "meter": (
        "Meters: labels 电表标签",
        [
            ["ALARM_OVERLOAD", "Overload", "过载", "1", "0"],
            ["ALARM_VOLTAGE_LOW", "Low voltage", "电压低", "1", "0"],
        ],
    ),
    "line": (
        "Bottling line: labels 灌装线标签",
        [
            ["STATE", "Jam", "卡瓶", "jam", ""],
            ["ALARM_SEALER_COLD", "Sealer too cold", "封口温度低", "1", "0"],
        ],
    ),
}
"""By kind of machine: the retainer's name and rows. It is started before the history comes."""

STATISTICS: dict[str, tuple[str, Rows]] = {
    "chiller": (
        "Chillers: cooling and energy 冷水机：制冷与用电",
        [
            ["COOLING_AVG", "avg", "COOLING"],
            ["SUPPLY_MAX", "max", "TEMP_SUPPLY"],
            ["COOLING_KWH", "delta", "COOLING_ENERGY"],
            ["KWH", "delta", "ENERGY"],
            ["OFF_S", "duration(BOOT==0)", ""],
        ],
    ),
    "compressor": (
        "Compressors: air and energy 空压机：供气与用电",
        [
            ["PRESSURE_MIN", "min", "PRESSURE"],
            ["LOAD_AVG", "avg", "LOAD"],
            ["KWH", "delta", "ENERGY"],
            ["IDLE_S", "duration(STATE==idle)", ""],
        ],
    ),
    "meter": (
        "Meters: energy and peaks 电表：电量与峰值",
        [["KWH", "delta", "ENERGY"], ["KW_MAX", "max", "POWER"], ["KW_AVG", "avg", "POWER"]],
    ),
    "line": (
        "Bottling line: output 灌装线：产量",
        [
            ["BOTTLES", "delta", "COUNT"],
            ["REJECTED", "delta", "REJECTS"],
            ["KWH", "delta", "ENERGY"],
            ["RUN_S", "duration(STATE==run)", ""],
            ["JAM_S", "duration(STATE==jam)", ""],
        ],
    ),
}
"""By kind of machine: the statistics' name and rows. They are started when the history is there."""

CALCULATES: dict[str, tuple[str, Rows]] = {
    "chiller": ("Chillers: efficiency 冷水机：能效", [["COP_MEAN", "round(COOLING_KWH / KWH, 2) if KWH > 0 else 0"]]),
    "line": (
        "Bottling line: quality 灌装线：质量",
        [
            ["REJECT_RATE", "round(100 * REJECTED / BOTTLES, 2) if BOTTLES > 0 else 0"],
            ["WH_A_BOTTLE", "round(1000 * KWH / BOTTLES, 2) if BOTTLES > 0 else 0"],
        ],
    ),
}
"""By kind of machine: the calculation's name and rows."""
