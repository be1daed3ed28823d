"""Certificates of the listeners: new files come into use, bad ones change nothing, and their end is told in time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from certificate_authority import Authority, Pair
from terrazzo.runtime.certificate_watch import DAY_S, CertificateWatch, ListenerFiles, say_expiry, stage_of
from terrazzo_broker.listeners.certificates import Certificates, TlsFiles


class Stand:
    """One listener's files, its certificates, and what is said of them."""

    def __init__(self, authority: Authority, caplog: pytest.LogCaptureFixture, days: float = 90) -> None:
        self.authority = authority
        self.pair: Pair = authority.issue("server", days=days)
        self.certificates = Certificates(TlsFiles(cert=self.pair.cert, key=self.pair.key), protocol="http/1.1")
        self.files = ListenerFiles(
            section="http", files=[self.pair.cert, self.pair.key], reload=self.certificates.reload
        )
        self.now_s = 0.0
        self.watch = CertificateWatch([self.files], clock_s=lambda: self.now_s)
        self.registry = CollectorRegistry()
        self.registry.register(self.watch)
        self._caplog = caplog

    def said(self) -> list[str]:
        lines = [f"{each.levelname} {each.getMessage()}" for each in self._caplog.records]
        self._caplog.clear()
        return lines

    def figure(self, name: str) -> float:
        value = self.registry.get_sample_value(f"terrazzo_certificate_{name}", {"listener": "http"})
        assert value is not None
        return value


@pytest.fixture
def stand(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Stand]:
    with caplog.at_level(logging.INFO, "terrazzo.runtime.certificate_watch"):
        made = Stand(Authority(tmp_path), caplog)
        made.watch.begin()
        yield made


async def test_files_that_stay_as_they_are_are_not_read(stand: Stand) -> None:
    context = stand.certificates.context
    await stand.watch.look()
    assert stand.certificates.context is context
    assert (stand.said(), stand.figure("reloads_total"), stand.figure("stale")) == ([], 0, 0)


async def test_a_new_pair_comes_into_use_by_itself(stand: Stand) -> None:
    context, expiry = stand.certificates.context, stand.figure("expiry_timestamp_seconds")
    stand.authority.issue("server", days=180)
    await stand.watch.look()
    assert stand.certificates.context is not context
    assert stand.figure("reloads_total") == 1
    assert stand.figure("expiry_timestamp_seconds") - expiry == pytest.approx(90 * DAY_S, abs=60)
    assert [line.split(",")[0] for line in stand.said()] == ["INFO http.tls_cert: read again"]


@pytest.mark.parametrize("first", ["cert", "key"])
async def test_half_of_a_new_pair_changes_nothing_and_the_whole_does(stand: Stand, first: str, tmp_path: Path) -> None:
    context = stand.certificates.context
    renewed = Authority(tmp_path / "elsewhere").issue("server")
    halves = [(stand.pair.cert, renewed.cert), (stand.pair.key, renewed.key)]
    for file, content in halves if first == "cert" else reversed(halves):
        assert stand.certificates.context is context
        file.write_bytes(content.read_bytes())
        await stand.watch.look()
        await stand.watch.look()  # as long as they don't fit they are read again, and told once
    assert stand.certificates.context is not context
    told = stand.said()
    assert [line for line in told if "stays in use" in line] == told[:1]
    assert told[0].startswith("WARNING http.tls_key: ")
    assert (stand.figure("stale"), stand.figure("reload_failures_total"), stand.figure("reloads_total")) == (0, 2, 1)


@pytest.mark.parametrize("content", [b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
async def test_a_bad_file_leaves_the_former_certificate_in_use(stand: Stand, content: bytes) -> None:
    context, expiry = stand.certificates.context, stand.figure("expiry_timestamp_seconds")
    stand.pair.cert.write_bytes(content)
    await stand.watch.look()
    assert stand.certificates.context is context
    assert (stand.figure("stale"), stand.figure("expiry_timestamp_seconds")) == (1, expiry)
    (line,) = stand.said()
    assert line.endswith("; the former certificate stays in use")


async def test_a_file_that_is_gone_is_told_and_its_return_too(stand: Stand) -> None:
    kept = stand.pair.key.read_bytes()
    stand.pair.key.unlink()
    await stand.watch.look()
    assert stand.figure("stale") == 1
    stand.pair.key.write_bytes(kept)
    await stand.watch.look()
    assert (stand.figure("stale"), len(stand.said())) == (0, 2)


async def test_a_request_to_read_needs_no_change(stand: Stand) -> None:
    context = stand.certificates.context
    stand.watch.reload()
    assert stand.certificates.context is not context


async def test_the_end_is_told_30_7_and_1_days_before_and_then(stand: Stand) -> None:
    end_s = stand.figure("expiry_timestamp_seconds")
    told = []
    for days in (31, 30, 29, 8, 7, 6, 2, 1, 0.5, 0, -1):
        stand.now_s = end_s - days * DAY_S
        await stand.watch.look()
        told.append((days, len(stand.said())))
    assert [days for days, lines in told if lines] == [30, 7, 1, 0]
    assert {lines for _, lines in told} == {0, 1}


async def test_a_start_tells_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    late = Stand(Authority(tmp_path), caplog, days=-1)
    late.now_s = late.certificates and 2**31
    late.watch.begin()
    (line,) = late.said()
    assert "has ended on" in line
    assert line.startswith("WARNING http.tls_cert: ")


def test_what_is_left_in_words() -> None:
    assert [stage_of(days * DAY_S) for days in (31, 30, 7.5, 7, 1, 0.1, 0, -3)] == [None, 30, 30, 7, 1, 1, 0, 0]
    assert say_expiry(40 * DAY_S, 0) == "ends on 1970-02-10, in 40 days"
    assert say_expiry(1.5 * DAY_S, 0) == "ends on 1970-01-02, in 1 day"
    assert say_expiry(DAY_S / 2, 0) == "ends on 1970-01-01, in less than a day"
    assert say_expiry(DAY_S, 2 * DAY_S) == "has ended on 1970-01-02: clients refuse it"
