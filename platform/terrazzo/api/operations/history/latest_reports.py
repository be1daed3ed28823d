"""The latest reports of some terminals as samples of a trial, read as their configurations say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from terrazzo.api.kernel.long_answers.lists import answer_within
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor
from terrazzo.domain.payload import MANY_BYTES, Points, kind_of
from terrazzo.errors import BadParameter, NotFound
from terrazzo.mapping.dry_run import Sample
from terrazzo.ports.store import Record
from terrazzo.reasons import say

MOST_TERMINALS = 100  # whose reports are looked for


class LatestReport(NamedTuple):
    """A stored report of a terminal, and its points; ``problem``: why it has none."""

    uid: str
    record: Record
    sample: Sample | None
    problem: str


async def latest_reports(services: Services, actor: Actor, terminals: Sequence[Any], count: int) -> list[LatestReport]:
    """The latest ``count`` reports of all these terminals (uids) together, the oldest first.

    Raises:
        BadParameter: no terminals, or too many; or one that isn't the actor's.
    """
    if not 0 < len(terminals) <= MOST_TERMINALS:
        raise BadParameter("terminal_list", say("latest_needs_terminals", most=MOST_TERMINALS))
    uid_of: dict[str, str] = {}
    for key in map(str, terminals):
        try:
            name = services.registry.series_name(await find_terminal(services, actor, key))
        except NotFound:
            raise BadParameter("terminal_list", say("no_terminal", terminal=f"{key!r:.70}")) from None
        uid_of.update(dict.fromkeys(await services.store.series(f"g/{name}/"), key))
    most = services.limits.answer_bytes
    with answer_within(most):
        records = (await services.store.latest(list(uid_of), count, most_bytes=most))[::-1]
    shown = await services.report_reader.as_json(records)
    read = await services.report_reader.as_json(await services.report_reader.read(shown))
    return [_report(uid_of[record.series], record, points) for record, points in zip(shown, read, strict=True)]


def _report(uid: str, record: Record, read: Record) -> LatestReport:
    body = read.body
    if len(body) > MANY_BYTES and body.startswith(b"{"):  # an object of points, which the trial's process reads
        return LatestReport(uid, record, Sample(uid, cast("Points", msgspec.Raw(body)), record.time_us), "")
    try:
        points = msgspec.msgpack.decode(body) if body[0] >= 0x80 else msgspec.json.decode(body)
    except msgspec.MsgspecError as error:
        return LatestReport(uid, record, None, say("report_unreadable", why=error))
    if not isinstance(points, dict):
        return LatestReport(uid, record, None, say("payload_no_object", got=kind_of(points)))
    return LatestReport(uid, record, Sample(uid, points, record.time_us), "")
