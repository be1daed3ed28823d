"""The pytest fixture ``terrazzo_fleet``, installed with the package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from .faults import Faults
    from .live_fleet import LiveFleet
    from .spec import TerminalSpec


class FleetFactory(Protocol):
    """What the fixture ``terrazzo_fleet`` gives to a test: makes fleets of simulated terminals, and stops them."""

    def __call__(
        self,
        host: str,
        port: int,
        *,
        terminals: Sequence[TerminalSpec | Mapping[str, Any]],
        interval_s: float | None = None,
        qos: int = 1,
        seed: int = 1,
        faults: Faults | None = None,
        session_expiry_s: int = 0,
        reboot_s: float = 0.2,
        upgrade_s: float = 0.2,
        download_bytes: int = 0,
        timeout_s: float = 15.0,
    ) -> LiveFleet:
        """Connects terminals and waits for it, at most ``timeout_s``; raises NotConnected.

        ``interval_s`` None: the terminals speak only when the test publishes, and answer commands.
        """


@pytest.fixture
def terrazzo_fleet() -> Iterator[FleetFactory]:
    """Makes fleets of simulated terminals; each is stopped, in order, when the test ends."""
    # Imported here: the plugin is loaded in every pytest run, also in those that never ask for a fleet.
    from .device import Habits
    from .faults import Faults
    from .fleet import FleetOptions
    from .link import LinkOptions
    from .live_fleet import LiveFleet

    def make(
        host: str,
        port: int,
        *,
        terminals: Sequence[TerminalSpec | Mapping[str, Any]],
        session_expiry_s: int = 0,
        timeout_s: float = 15.0,
        faults: Faults | None = None,
        **habits: Any,
    ) -> LiveFleet:
        quick = {"interval_s": None, "reboot_s": 0.2, "upgrade_s": 0.2, "backoff_s": 0.1, "backoff_most_s": 2.0}
        options = FleetOptions(
            link=LinkOptions(host=host, port=port, session_expiry_s=session_expiry_s, timeout_s=min(5.0, timeout_s)),
            habits=Habits(**{**quick, **habits}, faults=faults or Faults()),
        )
        fleet = LiveFleet(terminals, options)
        fleets.callback(fleet.stop)
        fleet.wait_connected(timeout_s)
        return fleet

    with ExitStack() as fleets:
        yield make
