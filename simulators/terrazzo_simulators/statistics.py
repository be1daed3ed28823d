"""Counters of what a fleet has done."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Statistics:
    """Counters of one fleet; ``connected`` is the only one that also falls."""

    connected: int = 0
    connects: int = 0
    disconnects: int = 0
    login_refused: int = 0
    unreachable: int = 0  # attempts that never reached a CONNACK
    subscribe_refused: int = 0
    published: int = 0
    acknowledged: int = 0  # QoS 1 and 2, with a reason below 0x80
    refused: int = 0  # QoS 1 and 2, with a reason of 0x80 or above
    dropped: int = 0  # by a full queue, or QoS 0 while offline
    lost: int = 0  # on purpose
    malformed: int = 0  # on purpose
    commands: int = 0
    repeated: int = 0  # commands that came twice and were carried out once
    unreadable: int = 0  # commands that could not be read
    errors: int = 0  # a peer that broke the protocol
    downloads: int = 0  # files that were fetched to their end
    resumed: int = 0  # downloads that were taken up again after a power cut
    claims: int = 0  # credentials that were asked for and told
    power_cuts: int = 0  # on purpose, during downloads

    def as_dict(self) -> dict[str, int]:
        """The counters by name."""
        return asdict(self)

    def line(self, *, elapsed_s: float, terminals: int, published_before: int, since_s: float) -> str:
        """One line of text; the rate is that of the last ``since_s`` seconds."""
        rate = (self.published - published_before) / since_s if since_s > 0 else 0.0
        shown = f"{elapsed_s:7.1f} s  connected {self.connected}/{terminals}  published {self.published} ({rate:.0f}/s)"
        shown += f"  acknowledged {self.acknowledged}  commands {self.commands}"
        rest = {name: value for name, value in self.as_dict().items() if value and name in _TROUBLES}
        return shown + "".join(f"  {name} {value}" for name, value in rest.items())


_TROUBLES = (
    "disconnects", "login_refused", "unreachable", "subscribe_refused", "refused", "dropped", "lost", "malformed",
    "unreadable", "errors",
)  # fmt: skip
