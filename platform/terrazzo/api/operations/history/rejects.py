"""What terminals sent and could not be decoded."""

from __future__ import annotations

from datetime import tzinfo
from functools import partial

import msgspec

from terrazzo.api.kernel.fields import Key, Moment
from terrazzo.api.kernel.long_answers.lists import answer_within, made
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, page_offset, paged
from terrazzo.api.kernel.scope import find_series_name, sees
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.report_topic import series_name_in, uid_of
from terrazzo.errors import BadParameter
from terrazzo.ports.store import Record
from terrazzo.reasons import Reason, say
from terrazzo.times import LATEST_US, format_spaced

_PREFIX = "x/"


class RejectList(PageRequest):
    """Without ``terminal_id``: of all terminals of the company. Both ends are inclusive."""

    terminal_id: Key | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None


class RejectBody(msgspec.Struct):
    """How the store keeps a reject: MessagePack of this."""

    topic: str
    reason: str
    payload: bytes
    told: Reason | msgspec.UnsetType = msgspec.UNSET


class RejectRecord(msgspec.Struct):
    """``payload`` is base64; ``text`` is the same where it reads as UTF-8, else null.

    ``told`` is the reason as code and parameters; missing in what older platforms kept, and where another program
    words it.
    """

    terminal_id: str
    time: str
    topic: str
    reason: str
    payload: bytes
    text: str | None
    told: Reason | msgspec.UnsetType = msgspec.UNSET


_bodies = msgspec.msgpack.Decoder(RejectBody)


async def handle_get_reject_list(services: Services, actor: Actor, request: RejectList) -> Paged[RejectRecord]:
    """A page of payloads that could not be decoded, by time of arrival, newest first."""
    start_us = request.start_time.time_us if request.start_time else 0
    end_us = request.end_time.time_us if request.end_time else LATEST_US
    if start_us > end_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    series = await _series(services, actor, request.terminal_id)
    with answer_within(services.limits.answer_bytes):
        page = await services.store.page(
            series,
            start_us,
            end_us,
            offset=page_offset(request),
            limit=request.page_size,
            most_bytes=services.limits.answer_bytes,
        )
    records = made(page.records, partial(_present, zone=services.zone), size=lambda record: len(record.body))
    return paged(request, records, page.total)


async def _series(services: Services, actor: Actor, key: str | int | None) -> list[str]:
    if key is not None:
        return [_PREFIX + await find_series_name(services, actor, key)]
    found = await services.store.series(_PREFIX)
    if actor.is_super:
        return found
    owners = {name: services.registry.terminal_of_series(name.removeprefix(_PREFIX)) for name in found}
    return [name for name, owner in owners.items() if owner is not None and sees(actor, owner)]


def _present(record: Record, *, zone: tzinfo) -> RejectRecord:
    body = _bodies.decode(record.body)
    return RejectRecord(
        terminal_id=uid_of(series_name_in(record.series)),
        time=format_spaced(record.time_us, zone),
        topic=body.topic,
        reason=body.reason,
        payload=body.payload,
        text=_text(body.payload),
        told=body.told,
    )


def _text(payload: bytes) -> str | None:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


OPERATIONS = (
    Operation(
        name="get_reject_list",
        summary="Payloads that could not be decoded, with their bytes and the reason, newest first",
        request=RejectList,
        result=Paged[RejectRecord],
        permission=Role.VIEWER,
        handler=handle_get_reject_list,
    ),
)
