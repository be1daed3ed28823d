"""``JetStreamSettings``: the servers, the credentials, and what is asked of the streams."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class JetStreamSettings:
    """One cluster of NATS servers, and the names of one platform's streams in it.

    ``url`` and ``monitor_url`` may each name several, with commas. ``credentials`` is a file as ``nsc`` makes them.
    """

    url: str
    monitor_url: str = ""
    name: str = "terrazzo"
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    credentials: str = ""
    tls_ca: str = ""  # PEM; empty: the system's authorities
    tls_cert: str = ""
    tls_key: str = ""
    replicas: int = 3
    most_bytes: int = 64 << 30  # of the log
    most_in_bytes: int = 8 << 30  # of that of what fronts have taken
    timeout_s: float = 5.0  # of one request

    @property
    def servers(self) -> list[str]:
        """The addresses of the servers."""
        return split_urls(self.url)

    @property
    def monitors(self) -> list[str]:
        """The addresses of their monitoring."""
        return split_urls(self.monitor_url)

    @property
    def has_tls(self) -> bool:
        """Whether TLS is spoken: an address says so, or a file of TLS is named."""
        named = any((self.tls_ca, self.tls_cert))
        return named or any(urlsplit(each).scheme == "tls" for each in self.servers)

    def tls_context(self) -> ssl.SSLContext | None:
        """What the connection is secured with.

        Raises:
            ValueError: a file can't be used; names the key without its section.
        """
        if not self.has_tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca or None)
        except OSError as error:
            raise ValueError(f"tls_ca: {self.tls_ca}: {error.strerror or error}") from None
        if self.tls_cert:
            try:
                context.load_cert_chain(self.tls_cert, self.tls_key or None)
            except OSError as error:
                raise ValueError(f"tls_cert: {self.tls_cert}: {error.strerror or error}") from None
        return context


def split_urls(text: str) -> list[str]:
    """Addresses that stand in one text with commas between them."""
    return [each.strip() for each in text.split(",") if each.strip()]
