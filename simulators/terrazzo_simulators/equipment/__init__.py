"""The machines that simulated terminals are attached to: one model for each terminal type."""

from __future__ import annotations

from .chiller import Chiller
from .compressor import Compressor
from .line import Line
from .machine import Machine
from .meter import Meter

MACHINES: dict[str, type[Machine]] = {
    "Adapter-II": Compressor,
    "Adapter-III": Chiller,
    "Adapter-X": Meter,
    "Other": Line,
}


def machine_of(terminal_type: str, *, seed: int, uid: str, rated: float | None = None) -> Machine:
    """The machine of a terminal of this type; its signals depend on the seed, the uid and the time only.

    ``rated``: its size, in what its type is rated by; None: by seed and uid.
    """
    machine = MACHINES[terminal_type](seed=seed, uid=uid)
    if rated is not None:
        machine.rated = rated
    return machine


__all__ = ["MACHINES", "Chiller", "Compressor", "Line", "Machine", "Meter", "machine_of"]
