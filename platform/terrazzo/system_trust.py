"""The certificate authorities that the system trusts, read when somebody is asked over TLS, and not before.

aiohttp reads them twice when it is loaded, for clients that name no context of their own: 0.1 s of a start and 3 MB, of
which a platform that asks nobody has nothing.
"""

from __future__ import annotations

import os
import ssl
from functools import cache

_PLACES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # where OpenSSL looks for them [SSL_CTX_set_default_verify_paths(3)]


def load_aiohttp() -> None:
    """Loads aiohttp without them: its own contexts trust nobody, and a client has to be given ``system_context``.

    To be called before any other module has loaded aiohttp, and before there are threads; else it changes nothing.
    """
    before = {name: os.environ.get(name) for name in _PLACES}
    os.environ.update(dict.fromkeys(_PLACES, os.devnull))
    try:
        import aiohttp  # noqa: F401
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@cache
def system_context() -> ssl.SSLContext:
    """What a client verifies servers with by default; the first call takes 0.1 s, in which others may run."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
