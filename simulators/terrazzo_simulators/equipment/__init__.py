"""The machines that simulated terminals are attached to: one model for each terminal type."""

from __future__ import annotations

from .chiller import Chiller
from .compressor import Compressor
from .machine import Machine
from .meter import Meter

MACHINES: dict[str, type[Machine]] = {"Adapter-II": Compressor, "Adapter-III": Chiller, "Adapter-X": Meter}


def machine_of(terminal_type: str, *, seed: int, uid: str) -> Machine:
    """The machine of a terminal of this type; its signals depend on the seed, the uid and the time only."""
    return MACHINES[terminal_type](seed=seed, uid=uid)


__all__ = ["MACHINES", "Chiller", "Compressor", "Machine", "Meter", "machine_of"]
