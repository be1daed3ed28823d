"""Reports that a terminal has kept while it had no connection: it delivers them first, in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from .spec import TerminalSpec
from .terminal import Message, Terminal


def kept_messages(spec: TerminalSpec, terminal: Terminal, now_s: Callable[[], float]) -> Iterator[list[Message]]:
    """The messages of each report since ``kept_since``, at whole multiples of the step, so that none is there twice.

    It ends at ``kept_until``, or where it has caught up with ``now_s``, which is asked again for each report.
    """
    if spec.kept_since is None:
        return
    step = spec.kept_step_s
    number = math.ceil(spec.kept_since / step)
    while number * step <= (now_s() if spec.kept_until is None else spec.kept_until):
        yield terminal.keep_report(number * step)
        number += 1
