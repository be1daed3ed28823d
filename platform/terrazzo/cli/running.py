"""What a platform that runs with this configuration answers on its HTTP port."""

from __future__ import annotations

import ssl
import urllib.request

from terrazzo.config.sections import Config

PROBE_TIMEOUT_S = 3.0
_MOST_BYTES = 16 * 2**20  # of an answer


def is_running(config: Config) -> bool:
    """Whether a Terrazzo answers on the HTTP port."""
    return ask(config, "/healthz") == b'{"status":"ok"}'


def ask(config: Config, path: str) -> bytes:
    """What answers on the HTTP port, with status 200; empty where nothing does."""
    if not config.http.port:
        return b""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.http.host, config.http.host)  # is asked  # nosec B104
    host = f"[{host}]" if ":" in host else host
    scheme, context = ("https", _any_name()) if config.http.tls_cert else ("http", None)
    try:
        headers = {"Authorization": f"Bearer {config.metrics.token}"} if config.metrics.token else {}
        request = urllib.request.Request(f"{scheme}://{host}:{config.http.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=PROBE_TIMEOUT_S, context=context) as answer:  # nosec B310 - http
            return bytes(answer.read(_MOST_BYTES))
    except (OSError, ValueError):
        return b""


def _any_name() -> ssl.SSLContext:
    """Takes the certificate of any name: it is for the name that clients use, and an address of this host is asked."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
