"""A collector that speaks OTLP over HTTP, as far as a test asks."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent. ``status``: what it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Span] = []
        self.resource: dict[str, str] = {}
        self.headers: list[dict[str, str]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            self.resource = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def named(self, name: str, **attributes: str | int) -> list[Span]:
        """Spans by name and attributes (with ``__`` for a dot)."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return [
            each for each in list(self.spans) if each.name == name and wanted.items() <= attributes_of(each).items()
        ]

    def children(self, parent: Span) -> list[Span]:
        """The spans below another, in the order in which they began."""
        found = [each for each in list(self.spans) if each.parent_span_id == parent.span_id]
        return sorted(found, key=lambda each: (each.start_time_unix_nano, each.end_time_unix_nano))


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.status == 200:
            self.server.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def collector() -> Iterator[Collector]:
    """One that listens on a free port."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="collector")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def attributes_of(span: Span) -> dict[str, str | int]:
    """A span's attributes, texts and numbers."""
    return {
        each.key: each.value.string_value if each.value.HasField("string_value") else each.value.int_value
        for each in span.attributes
    }
