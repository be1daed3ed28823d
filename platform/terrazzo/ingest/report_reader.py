"""Stored reports read as they are read when they come: by what their terminals' configurations say now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from terrazzo.domain.payload import (
    DEFAULT_LIMITS,
    MANY_BYTES,
    PointLimits,
    Points,
    Reject,
    has_many_values,
    take_points,
)
from terrazzo.domain.payloads.form import PayloadForm
from terrazzo.domain.payloads.stored import raw_payload
from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import channel_of, series_name_in, topic_of
from terrazzo.ingest.decoders import PayloadDecoders, ToDecode
from terrazzo.ingest.long_reports import is_long_pack, json_of_long, read_long
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.store import Record

_body_of = attrgetter("body")
_AT_ONCE = 64  # payloads that are decoded before others have their turn


class ReportReader:
    """Reads records of reports whose bodies are no objects of points."""

    def __init__(self, registry: Registry, decoders: PayloadDecoders) -> None:
        self._registry = registry
        self.decoders = decoders

    async def read(self, records: Sequence[Record]) -> Sequence[Record]:
        """The same records, with objects of points as bodies where their terminals' configurations say how.

        A body that can't be read so stays as it is.

        Raises:
            OSError: no decoder can be started.
        """
        forms = self._forms_of(records)
        if not forms:
            return records
        found, pauses = list(records), LoopPauses()
        waiting: dict[int, ToDecode] = {}
        for index, record in enumerate(records):
            await pauses.pause()
            form = forms.get(record.series)
            raw = None if form is None else raw_payload(record.body)
            if form is not None and raw is None and form.names and record.body[:1] != b"{":
                found[index] = replace(record, body=await self._read_array(form, record.body))
            elif form is not None and raw is not None and form.decoder:
                waiting[index] = ToDecode(form.decoder, tuple(topic_of(record.series).split("/")), raw)
            if len(waiting) == _AT_ONCE:
                await self._decode(waiting, found)
        await self._decode(waiting, found)
        return found

    async def as_json(self, records: Sequence[Record]) -> Sequence[Record]:
        """The same records, with JSON as the bodies of those of MessagePack that are long.

        Raises:
            Throttled: too much of the company waits for the decoders.
        """
        if max(map(len, map(_body_of, records)), default=0) <= MANY_BYTES:
            return records
        found = []
        for record in records:
            if is_long_pack(record.body):
                record = replace(record, body=await json_of_long(self.decoders, record.body))
            found.append(record)
        return found

    async def points_of(self, body: bytes, limits: PointLimits = DEFAULT_LIMITS) -> Points:
        """``take_points``, a long body's beside the event loop.

        Raises:
            Reject: as ``take_points`` does.
            Throttled: too much of the company waits for the decoders.
        """
        if not has_many_values(body):
            return take_points(body, limits)
        try:
            found = await read_long(self.decoders, body, limits, is_mapped=True)
        except OSError:
            found = None
        if found is None:  # there is no process, or it has too little memory
            return await asyncio.to_thread(take_points, body, limits)
        if isinstance(found, Reject):
            try:
                raise found
            finally:
                del found
        return found.points

    def reads(self, series: str) -> bool:
        """Whether reports of a series may be stored as something else than objects of points."""
        return self._form_of(series) is not None

    async def points(self, form: PayloadForm, topic: str, payload: bytes) -> bytes:
        """The points of one payload under a form, as a JSON object; raises ``Reject`` and ``OSError``."""
        if form.decoder:
            (found,) = await self.decoders.decode([ToDecode(form.decoder, tuple(topic.split("/")), payload)])
            if isinstance(found, Reject):
                try:
                    raise found
                finally:
                    del found
            return found
        if has_many_values(payload):
            return await self._read_long_array(form, payload)
        return _points_of(form, payload)

    async def _read_array(self, form: PayloadForm, body: bytes) -> bytes:
        """The points as JSON; the body itself where it can't be read so."""
        try:
            return await self._read_long_array(form, body) if has_many_values(body) else _points_of(form, body)
        except Reject:
            return body

    async def _read_long_array(self, form: PayloadForm, body: bytes) -> bytes:
        found = await read_long(self.decoders, body, DEFAULT_LIMITS, is_mapped=False, is_told=True, names=form.names)
        if found is None:  # the process has too little memory
            return await asyncio.to_thread(_points_of, form, body)
        if isinstance(found, Reject):
            try:
                raise found
            finally:
                del found
        return found.points.text

    async def _decode(self, waiting: dict[int, ToDecode], found: list[Record]) -> None:
        decoded = await self.decoders.decode(list(waiting.values())) if waiting else []
        for index, body in zip(waiting, decoded, strict=True):
            if isinstance(body, bytes):
                found[index] = replace(found[index], body=body)
        waiting.clear()

    def _forms_of(self, records: Sequence[Record]) -> dict[str, PayloadForm]:
        """By series, where there is one."""
        forms: dict[str, PayloadForm] = {}
        if not self._registry.forms:
            return forms
        for series in {record.series for record in records}:
            form = self._form_of(series)
            if form is not None:
                forms[series] = form
        return forms

    def _form_of(self, series: str) -> PayloadForm | None:
        channel = channel_of(series)
        terminal = self._registry.terminal_of_series(series_name_in(series)) if channel else None
        form = None if terminal is None else terminal.form
        return form if form is not None and channel in form.channels else None


def _points_of(form: PayloadForm, body: bytes) -> bytes:
    return msgspec.json.encode(form.read_array(body))
