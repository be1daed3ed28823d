"""The TLS files of the listeners: those of HTTP, and the watch over all of them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from terrazzo.config.sections import Config, ConfigError, HttpSection, MqttSection
from terrazzo.runtime.certificate_watch import CertificateWatch, ListenerFiles
from terrazzo_broker.broker import Broker
from terrazzo_broker.listeners.certificates import CertificateError, Certificates, TlsFiles


class Tls(NamedTuple):
    """What HTTPS and WSS are served with (None: HTTP is plain), and the watch over the files of all listeners."""

    http: Certificates | None
    watch: CertificateWatch


def open_tls(config: Config, broker: Broker) -> Tls:
    """Reads HTTP's files; those of MQTT are read when its listener opens.

    Raises:
        ConfigError: a file can't be used; names the key.
    """
    http = http_certificates(config.http)
    return Tls(http, _watch(config, http, broker))


def http_certificates(section: HttpSection) -> Certificates | None:
    """The certificate of the HTTP port; None for one without TLS.

    Raises:
        ConfigError: a file can't be used; names the key.
    """
    if not section.tls_cert:
        return None
    try:
        return Certificates(TlsFiles(cert=section.tls_cert, key=section.tls_key), protocol="http/1.1")
    except CertificateError as error:
        raise ConfigError(f"http.{error}") from None


def _watch(config: Config, http: Certificates | None, broker: Broker) -> CertificateWatch:
    listeners = []
    if http is not None:
        listeners.append(ListenerFiles(section="http", files=_files(config.http), reload=http.reload))
    if config.mqtt.has_tls:
        files = [*_files(config.mqtt), *map(Path, filter(None, [config.mqtt.tls_client_ca]))]
        listeners.append(ListenerFiles(section="mqtt", files=files, reload=broker.reload_certificates))
    return CertificateWatch(listeners)


def _files(section: HttpSection | MqttSection) -> list[Path]:
    return [Path(section.tls_cert), Path(section.tls_key)]
