"""Requests for imports and exports, and the progress that an import reports; without I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from terrazzo.client.errors import UnexpectedAnswer
from terrazzo.client.exchange import Request, encode_query, parse_envelope, result_of
from terrazzo.client.results import ImportReport

BULK_PATH = "/bulk/"


class Progress(NamedTuple):
    """The progress of an import: ``done`` of ``total`` rows; ``stage`` is ``read``, ``check`` or ``write``."""

    stage: str
    done: int
    total: int


OnProgress = Callable[[Progress], object]


def import_request(entity: str, data: bytes | str, *, dry_run: bool, mode: str) -> Request:
    """The upload of an import; it is answered with JSON lines: progress, and at the end the envelope."""
    query = {"dry_run": int(dry_run), "mode": mode, "progress": 1}
    body = data.encode() if isinstance(data, str) else data
    headers = {"Content-Type": "application/octet-stream"}
    return Request(method="POST", target=encode_query(BULK_PATH + entity, query), headers=headers, body=body)


def export_target(entity: str, *, format: str, secrets: bool) -> str:
    """The path and query of an export of records."""
    return encode_query(BULK_PATH + entity, {"format": format, "secrets": int(secrets)})


def series_target(kind: str, record: str | int, options: Mapping[str, Any]) -> str:
    """The path and query of an export of time series; ``kind`` is ``grid`` or ``mosaic``."""
    return encode_query(f"/export/{kind}/{quote(str(record), safe='')}", options)


class ImportAnswer:
    """Parses the JSON lines of an import's answer."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._rest = b""
        self._envelope: Mapping[str, Any] | None = None

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the answer, cut anywhere."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line)

    def finish(self) -> ImportReport:
        """The report.

        Raises:
            ActionError: nothing was imported; ``result`` is the report where the file was at fault.
            UnexpectedAnswer: the answer ended too early.
        """
        if self._envelope is None:
            raise UnexpectedAnswer(f"an import's answer ended without an envelope: {self._rest[:200]!r}")
        report: ImportReport = result_of(self._envelope)
        return report

    def _take(self, line: bytes) -> None:
        if line.startswith(b'{"progress"'):
            if self._on_progress is not None:
                self._on_progress(Progress(**json.loads(line)["progress"]))
        elif line.strip():
            self._envelope = parse_envelope(line)
