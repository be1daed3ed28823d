"""The open commands of each terminal, strictly in order: the next goes out when the one before it has ended.

Pure: what happens comes in with its time, what the journal has to write comes out as ``CommandStep``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

import msgspec

from terrazzo.domain.command import (
    NOT_ACKNOWLEDGED,
    NOT_THERE,
    REFUSED,
    SESSION_ENDED,
    CommandState,
    CommandStep,
)
from terrazzo.ports.bus import DeliveryFate


class OpenCommand(msgspec.Struct, kw_only=True, eq=False):
    """A command that has not ended; times in UTC microseconds."""

    uid: str
    terminal_id: str
    company_id: int
    payload: bytes
    queued_us: int
    expires_us: int
    in_flight: bool = False
    is_doubtful: bool = False  # the terminal may have it, and an answer may be on its way


class CommandQueues:
    """One queue per terminal."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[OpenCommand]] = {}

    def __len__(self) -> int:
        """How many commands are open."""
        return sum(map(len, self._queues.values()))

    def depth(self, terminal_id: str) -> int:
        """How many commands of a terminal are open."""
        return len(self._queues.get(terminal_id, ()))

    def put(self, command: OpenCommand) -> None:
        """Appends a command to its terminal's queue."""
        self._queues.setdefault(command.terminal_id, deque()).append(command)

    def next(self, terminal_id: str) -> OpenCommand | None:
        """The command to send now; None when there is none, or one is in flight or may have been received."""
        queue = self._queues.get(terminal_id)
        if not queue or queue[0].in_flight or queue[0].is_doubtful:
            return None
        return queue[0]

    def doubt(self) -> None:
        """Marks all commands as doubtful: after a restart nobody knows whether they have reached their terminals."""
        for queue in self._queues.values():
            for command in queue:
                command.is_doubtful = True

    def trust_followers(self) -> None:
        """Clears the doubt on all but the first command of each queue: only that one can have been sent."""
        for queue in self._queues.values():
            for command in islice(queue, 1, None):
                command.is_doubtful = False

    def is_doubtful(self, terminal_id: str) -> bool:
        """Whether the terminal may have received its next command already."""
        queue = self._queues.get(terminal_id)
        return queue is not None and queue[0].is_doubtful

    def trust(self, terminal_id: str) -> None:
        """Clears the doubt on a terminal's commands: it had its time to answer, so they may be sent again."""
        for command in self._queues.get(terminal_id, ()):
            command.is_doubtful = False

    def recall(self, terminal_id: str, uid: str, reason: str, now_us: int) -> CommandStep | None:
        """Ends a command that has certainly not been sent, as failed; None for any other."""
        for command in self._queues.get(terminal_id, ()):
            if command.uid == uid and not (command.in_flight or command.is_doubtful):
                self._remove(command)
                return CommandStep(uid=uid, state=CommandState.FAILED, time_us=now_us, reason=reason)
        return None

    def on_fate(self, command: OpenCommand, fate: DeliveryFate, now_us: int) -> CommandStep:
        """Applies what became of a sent command: delivered and refused end it, lost has it wait again."""
        if fate is DeliveryFate.LOST:
            command.in_flight, command.is_doubtful = False, True
            return CommandStep(uid=command.uid, state=CommandState.QUEUED, time_us=now_us, reason=SESSION_ENDED)
        self._remove(command)
        if fate is DeliveryFate.REFUSED:
            return CommandStep(uid=command.uid, state=CommandState.FAILED, time_us=now_us, reason=REFUSED)
        return CommandStep(uid=command.uid, state=CommandState.DELIVERED, time_us=now_us)

    def find_sent(self, terminal_id: str, uid: str) -> OpenCommand | None:
        """A command that was sent, or may have been; None where there is none, or it has ended."""
        for command in self._queues.get(terminal_id, ()):
            if command.uid == uid and (command.in_flight or command.is_doubtful):
                return command
        return None

    def on_answer(self, terminal_id: str, uid: str) -> None:
        """Ends a command that was answered: it has arrived, whatever becomes of its acknowledgement."""
        for command in self._queues.get(terminal_id, ()):
            if command.uid == uid and (command.in_flight or command.is_doubtful):
                self._remove(command)
                return

    def expire(self, now_us: int) -> Iterator[CommandStep]:
        """Ends all commands whose ``expires_us`` has come; yields their steps."""
        for queue in list(self._queues.values()):
            for command in [command for command in queue if command.expires_us <= now_us]:
                self._remove(command)
                reason = NOT_ACKNOWLEDGED if command.in_flight else NOT_THERE
                yield CommandStep(uid=command.uid, state=CommandState.EXPIRED, time_us=now_us, reason=reason)

    def fail(self, terminal_id: str, reason: str, now_us: int) -> Iterator[CommandStep]:
        """Ends all commands of a terminal as failed; yields their steps."""
        for command in self._queues.pop(terminal_id, ()):
            yield CommandStep(uid=command.uid, state=CommandState.FAILED, time_us=now_us, reason=reason)

    def waiting(self) -> list[str]:
        """The terminals with open commands."""
        return list(self._queues)

    def _remove(self, command: OpenCommand) -> None:
        queue = self._queues.get(command.terminal_id)
        if queue is None or command not in queue:
            return  # it ended before, by expiry or with its terminal
        queue.remove(command)
        if not queue:
            del self._queues[command.terminal_id]
