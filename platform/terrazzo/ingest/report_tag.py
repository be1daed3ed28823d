"""The tag of a topic: what the ingest needs to know of it, worked out once per connection and topic."""

from __future__ import annotations

import msgspec

from terrazzo.domain.payloads.form import PayloadForm
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.sealing import Seal

ANSWER_CHANNEL = "n"


class ReportTag(msgspec.Struct, frozen=True, kw_only=True):
    """Travels with each publish as ``PublishGrant.tag``, so that the hot loop handles no text."""

    topic: str  # in full
    series: str  # where its records are kept
    uid: str  # whose report it is
    channel: str
    rejects: str  # the series of the terminal's rejects
    answers: bool  # whether Correlation Data here names a command
    trace: Trace
    seal: Seal | None = None  # where payloads are sealed
    form: PayloadForm | None = None  # where they are read otherwise than as objects of points


def make_tag(report: ReportTopic, *, trace: Trace, seal: Seal | None) -> ReportTag:
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
    """The ``Seal`` of each terminal whose payloads are encrypted, cached because importing a key is slow."""

    def __init__(self) -> None:
        self._seals: dict[str, tuple[Terminal, Seal]] = {}

    def of(self, terminal: Terminal) -> Seal | None:
        """The seal for a terminal's present record; None where its payloads are plain."""
        if not terminal.encryption:
            return None
        kept = self._seals.get(terminal.uid)
        if kept is None or kept[0] is not terminal:
            kept = self._seals[terminal.uid] = (terminal, Seal(terminal, kept[1] if kept else None))
        return kept[1]

    def forget(self, uid: str) -> None:
        """Drops the seal of a terminal that was deleted."""
        self._seals.pop(uid, None)
