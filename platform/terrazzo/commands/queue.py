"""The open commands of each terminal, strictly in order: the next goes out when the one before it has ended.

Pure: what happens comes in with its time, what the journal has to write comes out as ``CommandStep``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
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

_SECOND_US = 1_000_000


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
        self._expiring: dict[int, dict[str, OpenCommand]] = {}  # by the second in which they expire, by uid
        self._seconds: list[int] = []  # a heap of the keys of ``_expiring``, and of some that are none any more
        self._count = 0
        self._round: list[str] = []  # terminals that ``some_waiting`` has not come to yet

    def __len__(self) -> int:
        """How many commands are open."""
        return self._count

    def depth(self, terminal_id: str) -> int:
        """How many commands of a terminal are open."""
        return len(self._queues.get(terminal_id, ()))

    def put(self, command: OpenCommand) -> None:
        """Appends a command to its terminal's queue."""
        self._queues.setdefault(command.terminal_id, deque()).append(command)
        self._count += 1
        second = command.expires_us // _SECOND_US
        if second not in self._expiring:
            self._expiring[second] = {}
            heappush(self._seconds, second)
        self._expiring[second][command.uid] = command

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

    def expire(self, now_us: int, most: int) -> list[tuple[str, CommandStep]]:
        """Ends some of the commands whose ``expires_us`` has come; terminal and step of each."""
        found: list[tuple[str, CommandStep]] = []
        while self._seconds and self._seconds[0] * _SECOND_US <= now_us and len(found) < most:
            of_second = self._expiring.get(self._seconds[0])
            if not of_second:  # all have ended
                self._expiring.pop(heappop(self._seconds), None)
                continue
            due = (command for command in of_second.values() if command.expires_us <= now_us)
            for command in list(islice(due, most - len(found))):
                self._remove(command)
                reason = NOT_ACKNOWLEDGED if command.in_flight else NOT_THERE
                step = CommandStep(uid=command.uid, state=CommandState.EXPIRED, time_us=now_us, reason=reason)
                found.append((command.terminal_id, step))
            if of_second and len(found) < most:
                break  # the rest of this second is not due
        return found

    def fail(self, terminal_id: str, reason: str, now_us: int) -> Iterator[CommandStep]:
        """Ends all commands of a terminal as failed; yields their steps."""
        for command in list(self._queues.get(terminal_id, ())):
            self._remove(command)
            yield CommandStep(uid=command.uid, state=CommandState.FAILED, time_us=now_us, reason=reason)

    def waiting(self) -> list[str]:
        """The terminals with open commands."""
        return list(self._queues)

    def some_waiting(self, most: int) -> list[str]:
        """Some of them, others with each call, until all have come; then it begins anew."""
        if not self._round:
            self._round = self.waiting()
        some = self._round[-most:]
        del self._round[-most:]
        return some

    def _remove(self, command: OpenCommand) -> None:
        queue = self._queues.get(command.terminal_id)
        if queue is None or command not in queue:
            return  # it ended before, by expiry or with its terminal
        queue.remove(command)
        self._count -= 1
        if not queue:
            del self._queues[command.terminal_id]
        of_second = self._expiring.get(command.expires_us // _SECOND_US, {})
        if of_second.get(command.uid) is command:
            del of_second[command.uid]
