"""Certificates of the listeners: read again when their files change, and their expiry told in time.

What can't be used, half of a pair among it, changes nothing: the former certificate stays in use until the files fit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo_broker.listeners.certificates import CertificateError

LOOK_S = 10.0  # between two looks at the files
DAY_S = 86_400.0
WARN_DAYS = 30
_STAGES = (WARN_DAYS, 7, 1, 0)  # days before the end at which it is told

_log = logging.getLogger(__name__)

Mark = tuple[tuple[int, int, int], ...]
"""Time, size and inode of each file: another one is another content."""


class ListenerFiles(msgspec.Struct, kw_only=True):
    """The TLS files of one section of the configuration.

    Attributes:
        section: ``http`` or ``mqtt``.
        files: the certificate first.
        reload: reads them for connections still to come; raises ``CertificateError`` and changes nothing if it can't.
        expires_s: end of the certificate in use, in seconds of Unix time.
        error: why what the files hold now is not in use; empty where it is.
    """

    section: str
    files: Sequence[Path]
    reload: Callable[[], None]
    expires_s: float = 0.0
    error: str = ""
    mark: Mark = ()
    told_days: int | None = None


class CertificateWatch(Collector):
    """Looks after the files of all TLS listeners.

    Args:
        clock_s: Unix time in seconds.
    """

    def __init__(self, listeners: Sequence[ListenerFiles], *, clock_s: Callable[[], float] = time.time) -> None:
        self._listeners = listeners
        self._clock_s = clock_s
        self._reloads = dict.fromkeys((each.section for each in listeners), 0)
        self._failures = dict.fromkeys(self._reloads, 0)

    def __bool__(self) -> bool:
        """Whether any listener has a certificate."""
        return bool(self._listeners)

    def begin(self) -> None:
        """Takes down what the files are now that the listeners have read them."""
        for each in self._listeners:
            each.mark = mark_of(each.files)
            self._take_expiry(each)
            self._tell_expiry(each)

    async def look(self) -> None:
        """Reads files that have changed, and those that couldn't be used; tells of certificates that end soon."""
        for each in self._listeners:
            mark = mark_of(each.files)
            if mark != each.mark or each.error:
                self._read(each, mark)
            self._tell_expiry(each)

    def reload(self) -> None:
        """Reads all files now (SIGHUP)."""
        for each in self._listeners:
            self._read(each, mark_of(each.files))

    def _read(self, listener: ListenerFiles, mark: Mark) -> None:
        is_new, listener.mark = mark != listener.mark, mark
        try:
            listener.reload()
        except CertificateError as error:
            self._failures[listener.section] += 1
            if is_new or str(error) != listener.error:
                _log.warning("%s.%s; the former certificate stays in use", listener.section, error)
            listener.error = str(error)
            return
        self._reloads[listener.section] += 1
        listener.error, listener.told_days = "", None
        self._take_expiry(listener)
        _log.info("%s.tls_cert: read again, good until %s", listener.section, day_of(listener.expires_s))

    def _take_expiry(self, listener: ListenerFiles) -> None:
        try:
            listener.expires_s = expiry_of(listener.files[0])
        except CertificateError as error:
            listener.error = str(error)  # the file has just changed: the next look reads it

    def _tell_expiry(self, listener: ListenerFiles) -> None:
        days = stage_of(listener.expires_s - self._clock_s())
        if days is None or days == listener.told_days:
            return
        listener.told_days = days
        told = say_expiry(listener.expires_s, self._clock_s())
        _log.warning("%s.tls_cert: the certificate %s; put a new pair in its place", listener.section, told)

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        expiry = GaugeMetricFamily(
            "terrazzo_certificate_expiry_timestamp_seconds",
            "Unix time at which the certificate in use ends, by section of the configuration",
            labels=["listener"],
        )
        stale = GaugeMetricFamily(
            "terrazzo_certificate_stale",
            "1 where the TLS files can't be used as they are now and the former certificate goes on",
            labels=["listener"],
        )
        reloads = CounterMetricFamily(
            "terrazzo_certificate_reloads_total", "Times that changed TLS files came into use", labels=["listener"]
        )
        failures = CounterMetricFamily(
            "terrazzo_certificate_reload_failures_total",
            "Looks at TLS files that could not be used",
            labels=["listener"],
        )
        for each in self._listeners:
            expiry.add_metric([each.section], each.expires_s)
            stale.add_metric([each.section], float(bool(each.error)))
            reloads.add_metric([each.section], self._reloads[each.section])
            failures.add_metric([each.section], self._failures[each.section])
        return expiry, stale, reloads, failures


def mark_of(files: Sequence[Path]) -> Mark:
    """What tells whether files have changed; a file that is gone is another one."""
    return tuple(map(_mark, files))


def _mark(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, -1, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


def expiry_of(cert: Path) -> float:
    """The end of the first certificate in a PEM file, in seconds of Unix time.

    Raises:
        CertificateError: the file has changed meanwhile and holds none.
    """
    from cryptography import x509  # takes a while to load

    try:
        return x509.load_pem_x509_certificate(cert.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError) as error:
        raise CertificateError("tls_cert", f"{cert}: {error}") from None


def stage_of(left_s: float) -> int | None:
    """Of 30, 7, 1 and 0 days the least that is not less than what is left; None: more than 30."""
    return next((days for days in reversed(_STAGES) if left_s <= days * DAY_S), None)


def say_expiry(expires_s: float, now_s: float) -> str:
    """How long a certificate is good, in words."""
    left_s = expires_s - now_s
    if left_s <= 0:
        return f"has ended on {day_of(expires_s)}: clients refuse it"
    days = int(left_s // DAY_S)
    left = "less than a day" if not days else "1 day" if days == 1 else f"{days} days"
    return f"ends on {day_of(expires_s)}, in {left}"


def day_of(time_s: float) -> str:
    """The day of a time, in UTC."""
    return datetime.fromtimestamp(time_s, UTC).date().isoformat()
