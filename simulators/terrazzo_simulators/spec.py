"""``TerminalSpec``: a simulated terminal's identity and login, the part of its record that the device itself knows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TYPES = ("Adapter-II", "Adapter-III", "Adapter-X", "Other")
MIXED = TYPES[:3]  # of which fleets are made that name no type
MODES = ("pwd", "auto", "cert")
SCRAM_METHODS = ("SCRAM-SHA-1", "SCRAM-SHA-256")
FORMATS = ("json", "msgpack")
PROTOCOLS = ("3.1.1", "5.0")

UID_LENGTH = 64
USERNAME_LENGTH = 32
PIN_LENGTH = 16

_UID_FORBIDDEN = re.compile(r"[/+#\x00-\x1f\x7f]")


class SpecError(ValueError):
    """A terminal's description that cannot be used; the text names the field and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSpec:
    """One terminal to simulate. ``uid``: its MQTT client id; ``pin``: the secret of its login, in any mode."""

    uid: str
    username: str
    pin: str
    mode: str = "pwd"  # pwd | auto | cert
    dixie: bool = False  # logs in by SCRAM, whatever the mode
    scram: str = "SCRAM-SHA-1"  # | SCRAM-SHA-256
    type: str = "Adapter-II"  # | Adapter-III | Adapter-X
    format: str = "json"  # | msgpack
    encryption: bool = False
    rsa_publickey: str = ""  # PEM; sealed with RSA-OAEP-256 where there is one, else with the key of pin and uid
    protocol: str = "5.0"  # | 3.1.1
    configurable: bool = True  # knows the command Config; older firmware refuses it
    interval_s: float | None = None  # between its reports; 0: none by itself; None: the fleet's
    retry_s: float = 0.0  # between two tries to connect; 0: soon, then more and more seldom
    rated: float | None = None  # of its machine (kW, m3/h, A or pieces/h); None: by seed and uid
    last: Mapping[str, float] = field(default_factory=dict)  # counters and settings as it showed them last
    kept_since: float | None = None  # it has kept reports since then (Unix seconds), and delivers them first
    kept_until: float | None = None  # until then; None: until it is connected
    kept_step_s: float = 60.0  # between two of them


def parse_spec(record: object, where: str = "terminal") -> TerminalSpec:
    """The spec in a JSON object. Raises ``SpecError`` naming ``where``, the field and the reason."""
    if not isinstance(record, Mapping):
        raise SpecError(f"{where}: must be an object, got {type(record).__name__}")
    unknown = sorted(set(record) - set(_READERS))
    if unknown:
        raise SpecError(f"{where}: unknown field {unknown[0]!r}; known are {', '.join(_READERS)}")
    missing = [name for name in ("uid", "username", "pin") if name not in record]
    if missing:
        raise SpecError(f"{where}: {missing[0]} is missing")
    values = {name: _read(name, record[name], where) for name in record if record[name] is not None}
    spec = TerminalSpec(**values)
    if spec.dixie and spec.protocol != "5.0":
        # The AUTH packet, and with it SCRAM, exists in MQTT 5.0 only [MQTT-4.12].
        raise SpecError(f"{where}: protocol must be 5.0 where dixie is 1, got {spec.protocol}")
    return spec


def read_specs(path: Path) -> list[TerminalSpec]:
    """The specs in a JSON file, a list of objects. Raises ``SpecError``, also if the file cannot be read."""
    try:
        records = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SpecError(f"{path}: is not JSON: {error}") from error
    if not isinstance(records, list) or not records:
        raise SpecError(f"{path}: must be a list of at least one terminal")
    specs = [parse_spec(record, f"{path}: terminal {index}") for index, record in enumerate(records, 1)]
    require_unique(specs)
    return specs


def require_unique(specs: list[TerminalSpec]) -> None:
    """Checks that no two terminals have the same uid: they would take over each other's connection without end.

    Raises:
        SpecError: two have; names the uid.
    """
    seen: set[str] = set()
    for spec in specs:
        if spec.uid in seen:
            raise SpecError(f"uid: {spec.uid!r} is there twice")
        seen.add(spec.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Patterns for the names of generated terminals, with ``{n}`` counted from ``first``."""

    uid: str = "sim-{n:05d}"
    username: str = "sim-{n:05d}"
    pin: str = "pin-{n:05d}"
    first: int = 1


def generate_specs(count: int, *, naming: Naming, types: tuple[str, ...] = MIXED, **common: Any) -> list[TerminalSpec]:
    """``count`` terminals, of each of ``types`` in rotation, with the same ``common`` fields."""
    specs = []
    for offset in range(count):
        n = naming.first + offset
        names = {name: _fill(getattr(naming, name), n, name) for name in ("uid", "username", "pin")}
        specs.append(parse_spec({**names, "type": types[offset % len(types)], **common}))
    require_unique(specs)
    return specs


def _fill(pattern: str, n: int, field: str) -> str:
    try:
        return pattern.format(n=n)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise SpecError(f"{field}: pattern {pattern!r} may only use {{n}}, as in 'sim-{{n:05d}}'") from error


def _text(value: object, limit: int) -> str:
    if not isinstance(value, str):
        raise SpecError(f"must be a string, got {type(value).__name__}")
    if not 1 <= len(value) <= limit:
        raise SpecError(f"must have 1 to {limit} characters, got {len(value)}")
    return value


def _uid(value: object) -> str:
    text = _text(value, UID_LENGTH)
    if _UID_FORBIDDEN.search(text):
        raise SpecError("must not contain / + # or a control character, for it is a level of topics")
    return text


def _pem(value: object) -> str:
    if value == "":
        return ""
    text = _text(value, 16_384)
    if "BEGIN PUBLIC KEY" not in text:
        raise SpecError("must be a PEM public key")
    return text


def _flag(value: object) -> bool:
    if not isinstance(value, int) or value not in (0, 1):  # a bool is an int
        raise SpecError(f"must be 0 or 1, got {value!r}")
    return bool(value)


def _number(low: float, high: float) -> Callable[[object], float]:
    def number(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise SpecError(f"must be a number from {low:g} to {high:g}, got {value!r}")
        return float(value)

    return number


def _numbers(value: object) -> Mapping[str, float]:
    if not isinstance(value, Mapping) or not all(_is_finite(each) for each in value.values()):
        raise SpecError("must be an object of numbers")
    return {str(name): float(each) for name, each in value.items()}


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _moment(value: object) -> float:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise SpecError(f"must be a time such as 2026-01-01T00:00:00Z, got {value!r}")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _one_of(choices: tuple[str, ...]) -> Any:
    def choose(value: object) -> str:
        if value not in choices:
            raise SpecError(f"must be one of {', '.join(choices)}, got {value!r}")
        return str(value)

    return choose


_READERS: dict[str, Any] = {
    "uid": _uid,
    "username": lambda value: _text(value, USERNAME_LENGTH),
    "pin": lambda value: _text(value, PIN_LENGTH),
    "mode": _one_of(MODES),
    "dixie": _flag,
    "scram": _one_of(SCRAM_METHODS),
    "type": _one_of(TYPES),
    "format": _one_of(FORMATS),
    "encryption": _flag,
    "rsa_publickey": _pem,
    "protocol": _one_of(PROTOCOLS),
    "configurable": _flag,
    "interval_s": _number(0, 86_400),
    "retry_s": _number(0, 86_400),
    "rated": _number(0.1, 1e6),
    "last": _numbers,
    "kept_since": _moment,
    "kept_until": _moment,
    "kept_step_s": _number(1, 86_400),
}


def _read(name: str, value: object, where: str) -> Any:
    try:
        return _READERS[name](value)
    except SpecError as error:
        raise SpecError(f"{where}: {name} {error}") from error
