"""The tag of a topic: what the ingest needs to know of it, worked out once per connection and topic."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import msgspec

from terrazzo.domain.payload import Reject, RejectKind
from terrazzo.domain.payloads.form import PayloadForm
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal

if TYPE_CHECKING:
    from terrazzo.ingest.sealing import Seal

ANSWER_CHANNEL = "n"


class Opener(Protocol):
    """What opens sealed payloads. ``is_slow``: it takes up to tens of milliseconds: not for the event loop."""

    is_slow: bool

    def open(self, sealed: bytes) -> bytes:
        """The payload inside. Raises ``Reject``."""
        ...


class RefusedSeal:
    """Of a payload that a front has refused already: it stays refused, with the reason that its terminal was told."""

    __slots__ = ("_refused", "is_slow")

    def __init__(self, reason: str) -> None:
        self.is_slow = False
        self._refused = reason

    def open(self, sealed: bytes) -> bytes:
        """Raises the refusal."""
        raise Reject(RejectKind.FRONT, self._refused)


class ReportTag(msgspec.Struct, frozen=True, kw_only=True):
    """Travels with each publish as ``PublishGrant.tag``, so that the hot loop handles no text."""

    topic: str  # in full
    series: str  # where its records are kept
    uid: str  # whose report it is
    channel: str
    rejects: str  # the series of the terminal's rejects
    answers: bool  # whether Correlation Data here names a command
    trace: Trace
    seal: Opener | None = None  # where payloads are sealed
    form: PayloadForm | None = None  # where they are read otherwise than as objects of points


def make_tag(report: ReportTopic, *, trace: Trace, seal: Opener | None) -> ReportTag:
    """The tag of a topic that a terminal may publish on."""
    uid, name, form = report.owner.uid, report.owner.series_name, report.owner.form
    return ReportTag(
        topic=report.topic,
        series=report.topic if name == uid else f"g/{name}{report.topic[2 + len(uid) :]}",
        uid=uid,
        channel=report.channel,
        rejects=f"x/{name}",
        answers=report.topic == f"g/{uid}/{ANSWER_CHANNEL}",
        trace=trace,
        seal=seal,
        form=form if form is not None and report.channel in form.channels else None,
    )


class Seals:
    """The ``Seal`` of each terminal whose payloads are encrypted, cached because importing a key is slow.

    ``is_loaded``: what opens them is in memory; most platforms have no such terminal.
    """

    def __init__(self) -> None:
        self.is_loaded = False
        self._seals: dict[str, tuple[Terminal, Seal]] = {}

    async def load(self) -> None:
        """Loads what opens them in a thread: it takes tens of milliseconds, and the next ``of`` would wait for it."""
        await asyncio.to_thread(_load_seal)
        self.is_loaded = True

    def of(self, terminal: Terminal) -> Seal | None:
        """The seal for a terminal's present record; None where its payloads are plain."""
        if not terminal.encryption:
            return None
        kept = self._seals.get(terminal.uid)
        if kept is None or kept[0] is not terminal:
            seal = _load_seal()(terminal, kept[1] if kept else None)
            kept = self._seals[terminal.uid] = (terminal, seal)
        return kept[1]

    def forget(self, uid: str) -> None:
        """Drops the seal of a terminal that was deleted."""
        self._seals.pop(uid, None)


def _load_seal() -> type[Seal]:
    from terrazzo.ingest.sealing import Seal  # its library takes a while to load

    return Seal
