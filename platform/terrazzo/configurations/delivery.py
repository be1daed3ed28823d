"""Which terminal has which configuration, and which is to be sent one next. Pure: no clock, no task, no I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from terrazzo.company_queue import CompanyQueue
from terrazzo.configurations.comparison import Difference, WantedConfiguration, differences
from terrazzo.ports.bus import DeliveryFate


class ConfigState(enum.Enum):
    """How far a terminal is with the configuration that it ought to have."""

    PENDING = "pending"  # to be sent as soon as it is there
    SENT = "sent"  # it has acknowledged the message; what it made of it, it has not said
    CONFIRMED = "confirmed"  # it reports what is wanted
    DIFFERS = "differs"  # it reports something else
    REFUSED = "refused"  # it has acknowledged the message with a reason code of 0x80 or above


class ConfigStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One terminal's; times are UTC microseconds, ``since_us`` that of the state."""

    record_id: int
    company_id: int
    version: str
    state: ConfigState
    since_us: int
    reported_us: int | None = None  # the last report on g/<uid>/p that was held against it
    difference: Sequence[Difference] = ()


class Configured(NamedTuple):
    """A terminal as this needs it."""

    uid: str
    record_id: int
    company_id: int
    config_id: int | None


class ConfigDeliveries:
    """The terminals whose configurations are delivered. The newest one takes the place of one that was not sent yet."""

    def __init__(self) -> None:
        self.changed: dict[str, ConfigStatus] = {}  # what has to be written, by uid
        self.gone: dict[int, None] = {}  # record ids of which nothing is kept any more
        self._wanted: dict[int, WantedConfiguration] = {}  # by the configuration's id
        self._status: dict[str, ConfigStatus] = {}  # bounded by the number of terminals, as are those below
        self._due: CompanyQueue[str] = CompanyQueue()  # whoever is there and has to be sent its own
        self._sending: dict[str, str] = {}  # uid to the version that is under way

    @property
    def is_idle(self) -> bool:
        """Whether no configuration is delivered at all."""
        return not self._wanted

    def wanted(self, config_id: int | None) -> WantedConfiguration | None:
        """What terminals of a configuration ought to have; None: it isn't delivered."""
        return None if config_id is None else self._wanted.get(config_id)

    def status(self, uid: str) -> ConfigStatus | None:
        """How far a terminal is; None: its configuration isn't delivered."""
        return self._status.get(uid)

    def load(self, uid: str, status: ConfigStatus) -> None:
        """Takes what was kept over a restart."""
        self._status[uid] = status

    def set_wanted(self, config_id: int, wanted: WantedConfiguration | None) -> bool:
        """Sets what terminals of a configuration ought to have; whether that is something else than before.

        If so ``follow`` has to be called for each of its terminals.
        """
        before = self._wanted.get(config_id)
        if wanted is None:
            self._wanted.pop(config_id, None)
        else:
            self._wanted[config_id] = wanted
        return (before and before.version) != (wanted and wanted.version)

    def follow(self, terminal: Configured, now_us: int) -> None:
        """A terminal came, or its configuration is another one: what it has to be sent is due, unless it has it."""
        wanted, status = self.wanted(terminal.config_id), self._status.get(terminal.uid)
        if status is not None and status.record_id != terminal.record_id:
            self.forget(terminal.uid)
            status = None
        if wanted is None:
            self.forget(terminal.uid)
        elif status is None or status.version != wanted.version:
            self._set(terminal, wanted, ConfigState.PENDING, now_us)
            self._due.put(terminal.company_id, terminal.uid)

    def forget(self, uid: str) -> None:
        """A terminal was deleted, or its configuration is delivered no more."""
        self._due.drop(uid)
        status = self._status.pop(uid, None)
        if status is not None:
            self.changed.pop(uid, None)
            self.gone[status.record_id] = None

    def on_ready(self, uid: str) -> None:
        """A terminal has connected and subscribed: it is sent what it has not confirmed."""
        status = self._status.get(uid)
        if status is not None and status.state is not ConfigState.CONFIRMED:
            self._due.put(status.company_id, uid)

    def next_due(self) -> str | None:
        """The terminal that is to be sent its configuration next, companies in turn; it isn't due any more."""
        return self._due.take()

    def begin(self, terminal: Configured, now_us: int) -> WantedConfiguration | None:
        """What to send to a terminal now, and ``end`` is called when it is known what became of it.

        It is the newest, also where ``follow`` has not come to this terminal yet. None: nothing, or the last is still
        under way; when that ends, the newest is due.
        """
        wanted = self.wanted(terminal.config_id)
        if wanted is None or terminal.uid in self._sending:
            return None
        self.follow(terminal, now_us)
        self._due.drop(terminal.uid)
        self._sending[terminal.uid] = wanted.version
        return wanted

    def give_up(self, uid: str) -> None:
        """Nothing was sent: the terminal isn't there. It is when it has subscribed next."""
        self._sending.pop(uid, None)

    def end(self, uid: str, fate: DeliveryFate, now_us: int) -> None:
        """What was sent was acknowledged, or is lost: then it goes out when the terminal has subscribed next."""
        version, status = self._sending.pop(uid, ""), self._status.get(uid)
        if status is None:
            return
        if version != status.version:
            self._due.put(status.company_id, uid)
        elif fate is DeliveryFate.REFUSED:
            self._put(uid, status, ConfigState.REFUSED, now_us)
        elif fate is DeliveryFate.DELIVERED and status.state in (ConfigState.PENDING, ConfigState.REFUSED):
            self._put(uid, status, ConfigState.SENT, now_us)

    def on_report(self, uid: str, config_id: int | None, points: Mapping[str, Any], now_us: int) -> None:
        """A terminal has reported its parameters (flat points)."""
        wanted, status = self.wanted(config_id), self._status.get(uid)
        if wanted is None or status is None:
            return
        found = differences(wanted, points)
        if not found:
            self._due.drop(uid)
        state = ConfigState.DIFFERS if found else ConfigState.CONFIRMED
        if found and status.state is ConfigState.PENDING:
            state = ConfigState.PENDING  # it doesn't know of the newest yet
        if status.reported_us is None or state is not status.state or found != list(status.difference):
            self._put(uid, status, state, now_us, reported_us=now_us, difference=found)

    def _set(self, terminal: Configured, wanted: WantedConfiguration, state: ConfigState, now_us: int) -> None:
        self._status[terminal.uid] = self.changed[terminal.uid] = ConfigStatus(
            record_id=terminal.record_id,
            company_id=terminal.company_id,
            version=wanted.version,
            state=state,
            since_us=now_us,
        )
        self.gone.pop(terminal.record_id, None)

    def _put(self, uid: str, status: ConfigStatus, state: ConfigState, now_us: int, **more: Any) -> None:
        since_us = status.since_us if state is status.state else now_us
        self._status[uid] = self.changed[uid] = replace(status, state=state, since_us=since_us, **more)
