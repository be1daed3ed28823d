"""The port to a replicated log: ``ReplicatedLog`` for frames in one order, ``Records`` for what nodes agree on.

A log numbers its frames from 1 without gaps. It keeps them, synced, on a quorum of its servers before it says so; what
was trimmed is gone from its beginning, never from between. Every method may raise ``LogUnavailable``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol


class LogUnavailable(Exception):
    """The log doesn't answer, or takes nothing now; it is unknown whether a frame that was under way is in it."""


class LogFull(Exception):
    """The log has as many bytes as it may have: the frame is not in it. ``str()`` says what to do."""


class StaleWriter(Exception):
    """The log's last frame is another than the writer knows: somebody else has written. ``last``: its number."""

    def __init__(self, last: int) -> None:
        super().__init__(f"another node has written to the log: its last frame is {last}")
        self.last = last


class LogWentBack(Exception):
    """The log is not the one that was followed: it has fewer frames, was made anew, or lacks frames that are needed.

    ``str()`` says what was found and what to do. Nobody may go on by himself.
    """


class LogUnusable(Exception):
    """The log's servers or streams are not set up as the platform needs them. ``str()`` names key and reason."""


class NobodyAnswers(LogUnavailable):
    """Nobody is there who could answer a call: it has certainly not arrived."""


class RecordChanged(Exception):
    """A record has another revision than the writer knows."""


class Logged(NamedTuple):
    """A frame in the log."""

    sequence: int
    body: bytes
    message_id: str
    key: tuple[str, ...] = ()  # where messages have keys


class LogServer(NamedTuple):
    """One of the servers that keep a log, as the one that leads sees it. ``is_current``: it has all, and is heard.

    ``is_away``: it was not heard for long; ``lag``: entries of its own that it lacks.
    """

    name: str
    leads: bool
    is_current: bool
    is_away: bool
    lag: int


class LogState(NamedTuple):
    """What the log says of itself. ``created``: when it was made, as its servers write it.

    ``first`` is the oldest frame that is there, ``last`` the newest; a log without frames has ``first`` = ``last`` + 1.
    """

    created: str
    first: int
    last: int
    size: int  # bytes
    most: int  # bytes that it may have
    servers: tuple[LogServer, ...] = ()  # by name


class Revision(NamedTuple):
    """A record's value, and the revision to name when it is changed."""

    value: bytes
    revision: int


class LogReader(Protocol):
    """Reads frames one after the other from a place on."""

    async def next(self, wait_s: float) -> list[Logged]:
        """The next frames, in order and without a gap; empty when none came within ``wait_s``.

        Raises:
            LogWentBack: the log was made anew or has lost frames, or the next one was trimmed.
            LogUnavailable: try again.
        """

    async def close(self) -> None:
        """Ends it."""


class ReplicatedLog(Protocol):
    """Frames in one order. Where there is to be one writer at a time, each names the number of the last frame."""

    @property
    def most_bytes(self) -> int:
        """Of one frame."""

    async def state(self) -> LogState:
        """As the log's leader knows it."""

    async def publish(self, body: bytes, *, message_id: str, last: int | None) -> int:
        """Appends a frame if the newest one has the number ``last``; returns its own number once it is kept.

        None appends it in any case. What has the ``message_id`` of a moment ago is not appended again.

        Raises:
            StaleWriter: the newest one has another number; this frame was not appended now.
            LogFull: it was not appended.
            LogUnavailable: unknown; ``find`` says so later.
        """

    async def find(self, sequence: int) -> Logged | None:
        """A frame by its number, None when there is none, or none any more."""

    def read(self, after: int, created: str) -> LogReader:
        """Reads what comes after the frame ``after`` of the log that was made at ``created``."""

    async def trim(self, before: int) -> None:
        """Deletes all frames with smaller numbers; the newest one always stays."""


class ReportLog(ReplicatedLog, Protocol):
    """The log of what fronts have taken, which the first of them makes."""

    async def open(self) -> None:
        """Makes it where there is none, and checks it.

        Raises:
            LogUnusable: it can't be made, or is set up otherwise.
        """

    async def is_there(self) -> bool:
        """Whether there is one; raises as ``open``."""


class KeyedLog(Protocol):
    """The newest message of each key, in the order in which they were set, which is one for all who read it."""

    async def open(self) -> None:
        """Makes it where there is none; raises as ``ReportLog.open``."""

    async def state(self) -> LogState:
        """As the log's leader knows it."""

    async def put(self, key: Sequence[str], body: bytes, *, message_id: str, lasts_s: float = 0.0) -> int:
        """Sets a key's message, for good or for so many seconds, once it is kept; its number.

        What has the ``message_id`` of a moment ago is not set again.

        Raises:
            LogFull: it was not set.
            LogUnavailable: unknown.
        """

    def read(self, after: int, created: str) -> LogReader:
        """Reads what comes after the message ``after``; what was replaced by a later one is left out."""


class StateLog(KeyedLog, Protocol):
    """A ``KeyedLog`` of which a key's message is changed by whoever knows the present one."""

    async def get(self, key: Sequence[str]) -> Logged | None:
        """A key's present message, as the log's leader has it."""

    async def replace(
        self, key: Sequence[str], body: bytes, *, last: int, message_id: str, lasts_s: float = 0.0
    ) -> int:
        """``put``, where the present message has the number ``last`` (0: there is none).

        Raises:
            RecordChanged: it has another.
            LogFull: it was not set.
            LogUnavailable: unknown.
        """


class QueueLog(Protocol):
    """Messages in queues, each with a key, numbered in one order for all."""

    async def open(self) -> None:
        """Makes it where there is none; raises as ``ReportLog.open``."""

    async def state(self) -> LogState:
        """As the log's leader knows it."""

    async def append(self, key: Sequence[str], body: bytes, *, message_id: str) -> int:
        """Appends a message to a queue, once it is kept; its number.

        What has the ``message_id`` of a moment ago is not appended again.

        Raises:
            LogFull: it was not appended.
            LogUnavailable: unknown.
        """

    async def find(self, sequence: int) -> Logged | None:
        """A message by its number; None: it is not there any more."""

    def read(self, after: int, created: str) -> LogReader:
        """Reads what comes after the message ``after``; what was removed is left out."""

    async def purge(self, key: Sequence[str], *, before: int = 0) -> None:
        """Removes a queue's messages with smaller numbers than ``before``; all of them for 0."""


class Records(Protocol):
    """Small values by key, changed by compare-and-set. Answers come from the leader of their servers, or not at all."""

    async def get(self, key: str) -> Revision | None:
        """A value; None when there is none."""

    async def put(self, key: str, value: bytes, *, revision: int) -> int:
        """Sets a value whose present revision is ``revision`` (0: there is none); returns the new one.

        Raises:
            RecordChanged: it has another.
            LogFull: there is no room for one more.
            LogUnavailable: unknown.
        """

    async def delete(self, key: str) -> None:
        """Deletes a value, if there is one."""

    async def all(self) -> Mapping[str, bytes]:
        """All values by key."""


class FrontRecords(Records, Protocol):
    """Records that fronts have among themselves, which the first of them makes."""

    async def open(self) -> None:
        """Makes them where there are none.

        Raises:
            LogUnusable: they can't be made, or are set up otherwise.
        """


class Calls(Protocol):
    """Requests from node to node, which are answered or not; nothing is kept."""

    async def ask(self, node: str, body: bytes, *, timeout_s: float) -> bytes:
        """The answer of a node.

        Raises:
            NobodyAnswers: it is not there.
            LogUnavailable: unknown whether it was asked.
        """

    async def serve(self, node: str, answer: Callable[[bytes], bytes]) -> None:
        """Answers what this node is asked, until it is cancelled."""


class Questions(Calls, Protocol):
    """Calls whose answers take their time."""

    @property
    def most_bytes(self) -> int:
        """Of a question, and of an answer."""

    async def serve_each(self, node: str, answer: Callable[[bytes], Awaitable[bytes]], *, at_once: int) -> None:
        """Answers what this node is asked, ``at_once`` at a time, until it is cancelled."""
