"""``terrazzo serve`` that dies as by ``kill -9`` at a step of the next command after SIGUSR1. A program."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from terrazzo.cli import main
from terrazzo.commands.journal import CommandJournal
from terrazzo.embedded.bus import EmbeddedBus

STEPS = ("before the send", "after the send", "before the next line of the journal", "after an answer")


def die(*_: Any, **__: Any) -> Any:
    """At once, without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


def arm(step: str) -> None:
    """Puts death into the way of the next command."""
    send, apply = EmbeddedBus.send, CommandJournal.apply

    def send_and_die(self: EmbeddedBus, *given: Any, **more: Any) -> bool:
        if not send(self, *given, **more):
            return False
        asyncio.get_running_loop().call_later(0.003, die)  # its bytes leave first; an acknowledgement may come back
        return True

    def die_of_an_answer(self: CommandJournal, changes: Any) -> Any:
        return die() if any(change.answer for change in changes) else apply(self, changes)

    if step == STEPS[0]:
        EmbeddedBus.send = die  # type: ignore[method-assign]
    elif step == STEPS[1]:
        EmbeddedBus.send = send_and_die  # type: ignore[method-assign]
    else:
        CommandJournal.apply = die if step == STEPS[2] else die_of_an_answer  # type: ignore[method-assign]


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: arm(os.environ["DIE"]))
    sys.argv[0] = "terrazzo"
    main()
