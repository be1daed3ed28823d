"""``Terminal``: what a terminal says and does, without a connection (reports, alarms, versions, commands)."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .command import UNITS, Command, CommandError, shown
from .equipment import Machine, machine_of
from .equipment.machine import SettingError
from .noise import Noise
from .spec import TerminalSpec

_REMEMBERED = 256
_KEPT_STEP_S = 60.0
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_SCALARS = (str, int, float, bool, type(None))


class Message(NamedTuple):
    """A message to publish: on a channel, or, as answer to an MQTT 5 command, on its Response Topic."""

    channel: str
    points: dict[str, Any]
    topic: str | None = None
    correlation: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reaction:
    """The effect of a command: messages to send now, and perhaps a reboot or an upgrade that takes time."""

    messages: list[Message]
    reboots: bool = False
    upgrades: bool = False
    repeated: bool = False  # the command had been carried out before; only its answer goes out again


class Terminal:
    """One terminal. Times are passed in, in seconds since 1970 (UTC), by the terminal's own clock."""

    def __init__(self, spec: TerminalSpec, *, seed: int, upgrade_failure: float = 0.0) -> None:
        self.spec = spec
        self.machine: Machine = machine_of(spec.type, seed=seed, uid=spec.uid, rated=spec.rated)
        self.machine.resume(spec.last)
        self.versions = {"mcu_version": "1.4.0", "lua_version": "2.1.0"}
        self.started_s: float | None = None
        self._forced: dict[str, Any] = {}
        self._configuration: dict[str, Any] = {}  # by dotted name, with the version; kept when the power is cut
        # Whoever goes on tells its alarms once: one that was there before may be gone.
        self._alarms: dict[str, int] | None = {} if spec.last else None
        self._answered: OrderedDict[bytes, Message] = OrderedDict()
        self._upgrades: list[tuple[str, str]] = []
        self._luck = Noise(seed, spec.uid, "upgrade")
        self._upgrade_failure = upgrade_failure
        self._upgrade_count = 0

    def start(self, time_s: float) -> list[Message]:
        """The messages after each start: information, versions, parameters."""
        self.started_s = time_s
        information = {
            "Type": self.spec.type,
            "Hardware": self.machine.hardware,
            "Serial": f"{int(self._luck.between(1e7, 1e8, -1))}",
            "Protocol": self.spec.protocol,
        }
        return [
            Message("i", _timed(information, time_s)),
            Message("v", _timed(self.versions, time_s)),
            self._parameters(time_s),
        ]

    def keep_report(self, time_s: float) -> list[Message]:
        """As ``report``, of a time that is gone: worked out coarsely, since a week of it is delivered at once."""
        self.machine.advance(time_s, step_s=_KEPT_STEP_S)
        return self.report(time_s)

    def report(self, time_s: float) -> list[Message]:
        """The real-time values at this time, and the alarms if one has changed."""
        self.machine.advance(time_s)
        messages = [Message("r", _timed(self._points(), time_s))]
        alarms = {name: int(alarm.active) for name, alarm in self.machine.alarms.items()}
        if alarms != self._alarms and (self._alarms is not None or any(alarms.values())):
            messages.append(Message("a", _timed(alarms, time_s)))
        self._alarms = alarms
        return messages

    def obey(self, command: Command, time_s: float) -> Reaction:
        """Carries out a command, once for each Correlation Data, and answers it."""
        known = self._answered.get(command.correlation) if command.correlation is not None else None
        if known is not None:
            return Reaction([known], repeated=True)
        try:
            results, extra = _HANDLERS[command.act](self, command.values, time_s)
        except CommandError as error:
            return Reaction([self.refuse(command, str(error), time_s)])
        answer = _answer(command, {"Act": command.act, "Result": "ok", **results}, time_s)
        self._remember(command, answer)
        return Reaction([answer, *extra], reboots=command.act == "Reboot", upgrades=command.act == "AXUpgrade")

    def refuse(self, command: Command, reason: str, time_s: float) -> Message:
        """The answer to a command that is not carried out."""
        answer = _answer(command, {"Act": command.act, "Result": "error", "Reason": reason}, time_s)
        self._remember(command, answer)
        return answer

    def finish_upgrade(self, time_s: float) -> list[Message]:
        """Completes the oldest upgrade: the new version on ``v``, or a notice that it failed."""
        if not self._upgrades:
            return []
        unit, version = self._upgrades.pop(0)
        self._upgrade_count += 1
        if self._luck.uniform(self._upgrade_count) < self._upgrade_failure:
            failed = {"Act": "AXUpgrade", "Unit": unit, "Result": "failed", "Reason": "checksum of the file is wrong"}
            return [Message("n", _timed(failed, time_s))]
        self.versions[_version_name(unit)] = version
        return [Message("v", _timed(self.versions, time_s))]

    def fail_upgrade(self, reason: str, time_s: float) -> list[Message]:
        """Ends the oldest upgrade with a notice that says why it failed."""
        unit, _ = self._upgrades.pop(0)
        failed = {"Act": "AXUpgrade", "Unit": unit, "Result": "failed", "Reason": reason}
        return [Message("n", _timed(failed, time_s))]

    def lose_upgrades(self) -> None:
        """Forgets the upgrades in progress, as after a power cut."""
        self._upgrades.clear()

    def _points(self) -> dict[str, Any]:
        points = self.machine.points()
        for name, value in self._forced.items():
            _put(points, name, value)
        return points

    def _remember(self, command: Command, answer: Message) -> None:
        if command.correlation is None:
            return
        self._answered[command.correlation] = answer
        if len(self._answered) > _REMEMBERED:
            self._answered.popitem(last=False)

    def _control(self, values: dict[str, Any], time_s: float) -> tuple[dict[str, Any], list[Message]]:
        if not values:
            raise CommandError("Control names no point")
        for name, value in values.items():
            _require_sayable(name, value)
        self.machine.advance(time_s)
        settings = {name: value for name, value in values.items() if name in self.machine.settings}
        self._apply(settings)
        self._forced.update({name: value for name, value in values.items() if name not in settings})
        return values, [self._parameters(time_s)] if settings else []

    def _configure(self, values: dict[str, Any], time_s: float) -> tuple[dict[str, Any], list[Message]]:
        """Takes a configuration: what the machine has a setting for is set, the rest is kept, and all is reported."""
        version, config = values.get("Version"), values.get("Config")
        if not self.spec.configurable:
            raise CommandError("this firmware takes no Config")
        if not isinstance(version, str) or not isinstance(config, dict | list):
            raise CommandError("Config needs a Version and a Config")
        leaves = dict(_leaves(config)) if isinstance(config, dict) else {}
        self._apply({name: value for name, value in leaves.items() if name in self.machine.settings})
        self._configuration = {**leaves, "Version": version}
        return {"Version": version}, [self._parameters(time_s)]

    def _parameters(self, time_s: float) -> Message:
        """What the terminal is set to: the settings count where the configuration was overruled since."""
        return Message("p", _timed({**self._configuration, **self.machine.settings}, time_s))

    def _apply(self, settings: dict[str, Any]) -> None:
        """Sets all settings, or none if one is refused."""
        before = dict(self.machine.settings)
        try:
            for name, value in settings.items():
                self.machine.set(name, value)
        except SettingError as error:
            self.machine.settings = before
            raise CommandError(str(error)) from error

    def _reboot(self, values: dict[str, Any], time_s: float) -> tuple[dict[str, Any], list[Message]]:
        return {}, []

    def _diag(self, values: dict[str, Any], time_s: float) -> tuple[dict[str, Any], list[Message]]:
        self.machine.advance(time_s)
        results = {
            "Uptime": round(max(0.0, time_s - (self.started_s if self.started_s is not None else time_s)), 1),
            "Signal": round(-70 + 12 * self.machine.fine(time_s, 300)),
            "Memory": round(58 + 6 * self.machine.fine(time_s, 900), 1),
            "Alarms": sum(alarm.active for alarm in self.machine.alarms.values()),
            **self.versions,
        }
        return results, []

    def _upgrade(self, values: dict[str, Any], time_s: float) -> tuple[dict[str, Any], list[Message]]:
        unit, url = values.get("Unit"), values.get("URL")
        if unit not in UNITS:
            raise CommandError(f"Unit must be LUA or MCU, got {shown(unit)}")
        if not isinstance(url, str) or not url.startswith(("http://", "https://", "ftp://")):
            raise CommandError(f"URL must be an http or ftp address, got {shown(url)}")
        version = _version_in(urlsplit(url).path) or _next_version(self.versions[_version_name(unit)])
        self._upgrades.append((unit, version))
        return {"Unit": unit}, []


_Handler = Callable[[Terminal, dict[str, Any], float], tuple[dict[str, Any], list[Message]]]
_HANDLERS: dict[str, _Handler] = {
    "Control": Terminal._control,
    "Reboot": Terminal._reboot,
    "Diag": Terminal._diag,
    "AXUpgrade": Terminal._upgrade,
    "Config": Terminal._configure,
}


def _leaves(config: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values by dotted name; arrays can't be reported, the version stands for them."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield prefix + name, value


def _require_sayable(name: str, value: Any) -> None:
    """Refuses a value that the terminal could not encode in its next report."""
    if not isinstance(value, _SCALARS):
        raise CommandError(f"{name} must be a number, a string, a boolean or null")
    if isinstance(value, float) and not math.isfinite(value):
        raise CommandError(f"{name} must be a finite number")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise CommandError(f"{name} must fit into 64 bits")
    try:
        f"{name}{value}".encode()
    except UnicodeEncodeError:
        raise CommandError("a name or value is not Unicode text") from None


def _answer(command: Command, points: dict[str, Any], time_s: float) -> Message:
    return Message("n", _timed(points, time_s), topic=command.response_topic, correlation=command.correlation)


def _timed(points: dict[str, Any], time_s: float) -> dict[str, Any]:
    """The points with the terminal's time added, in ISO 8601 with milliseconds."""
    moment = datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds")
    return {**points, "Time": moment.replace("+00:00", "Z")}


def _put(points: dict[str, Any], name: str, value: Any) -> None:
    """Sets a point that may be nested (``U.L1``); a name that leads through a plain value stays flat."""
    *path, last = name.split(".")
    place = points
    for part in path:
        inner = place.get(part)
        if not isinstance(inner, dict):
            points[name] = value
            return
        place = inner
    place[last] = value


def _version_name(unit: str) -> str:
    return f"{unit.lower()}_version"


def _version_in(url: str) -> str | None:
    """The version in a firmware file's name: ``2.2.0`` in ``http://host/lua-2.2.0.bin``."""
    found = _VERSION.findall(url.rsplit("/", 1)[-1])
    return found[-1] if found else None


def _next_version(version: str) -> str:
    *head, last = version.split(".")
    return ".".join((*head, str(int(last) + 1)))
