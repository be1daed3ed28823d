"""The terminals' side of a platform, for each test that asks for it."""

from __future__ import annotations

from platform_site import company, peer, site

__all__ = ["company", "peer", "site"]
