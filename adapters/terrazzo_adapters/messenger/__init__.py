"""The ports ``terrazzo.ports.providers``: HTTP requests to checked addresses, and in ``smtp`` e-mail."""

from terrazzo_adapters.messenger.addresses import Guard
from terrazzo_adapters.messenger.http import GuardedHttp

__all__ = ["Guard", "GuardedHttp"]
