"""Faults injected on purpose, at a seeded rate: the same seed breaks the same messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from .noise import Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates of faults, as shares of the messages from 0 to 1."""

    message_loss: float = 0.0  # a message that is never sent
    connection_loss: float = 0.0  # the connection is cut instead of sending
    malformed: float = 0.0  # the payload is broken
    upgrade_failure: float = 0.0  # share of the firmware upgrades
    upgrade_defect: float = 0.0  # share of the terminals in which every upgrade fails
    upgrade_power_cut: float = 0.0  # share of the downloads that a power cut ends; they are taken up again later
    skew_s: float = 0.0  # each terminal's clock is off by up to so much, either way
    storm_every_s: float = 0.0  # 0: never; a share of the fleet is cut at the same moment
    storm_share: float = 0.5


class Fate(Enum):
    """What happens to one message."""

    SEND = "send"
    LOSE = "lose"
    CUT = "cut"
    GARBLE = "garble"


class FaultPlan:
    """The faults of one terminal, by message number."""

    def __init__(self, faults: Faults, *, seed: int, uid: str) -> None:
        self._faults = faults
        self._fate = Noise(seed, uid, "fate")
        self._shape = Noise(seed, uid, "garble")
        self._power = Noise(seed, uid, "power")
        self.is_defective = Noise(seed, uid, "defect").uniform(0) < faults.upgrade_defect
        self.skew_s = Noise(seed, uid, "skew").between(-faults.skew_s, faults.skew_s)

    def fate(self, index: int) -> Fate:
        """The fate of the terminal's message number ``index``."""
        draw = self._fate.uniform(index)
        for share, fate in (
            (self._faults.message_loss, Fate.LOSE),
            (self._faults.connection_loss, Fate.CUT),
            (self._faults.malformed, Fate.GARBLE),
        ):
            if draw < share:
                return fate
            draw -= share
        return Fate.SEND

    def cut_after(self, download: int) -> int | None:
        """The number of pieces after which a power cut ends download number ``download``; None if none does."""
        if self._power.uniform(2 * download) >= self._faults.upgrade_power_cut:
            return None
        return 1 + int(self._power.uniform(2 * download + 1) * 3)

    def garble(self, payload: bytes, index: int) -> bytes:
        """A broken form of the payload, which no decoder accepts."""
        return GARBLES[int(self._shape.uniform(index) * len(GARBLES))](payload)


GARBLES: tuple[Callable[[bytes], bytes], ...] = (
    lambda payload: payload[: len(payload) // 2],  # cut off on the way
    lambda payload: b"",
    lambda payload: b"[1,2,3]",  # JSON, but no object
    lambda payload: b'{"POWER":NaN}',
    lambda payload: b'{"POWER":"\xff\xfe"}',  # not UTF-8
    lambda payload: b"\xc1" + payload,  # a byte that MessagePack never uses
    lambda payload: b'{"deep":' * 200 + b"1" + b"}" * 200,
)
